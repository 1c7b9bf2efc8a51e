package console

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// cookieName is the cookie that holds the token of a login.
const cookieName = "tutti_session"

// forgeryHeader is where acts show that a page of ours sent them.
const forgeryHeader = "X-Tutti-Csrf"

// sessions gives browsers a session over the API's tokens.
type sessions struct{ api http.Handler }

// opened is a login as its page knows it. The token is not in it: scripts cannot read it.
type opened struct {
	Session *api.Session `json:"session,omitempty"` // missing: nobody is logged in
	Csrf    string       `json:"csrf,omitempty"`    // to be shown with every act
}

// show says who is logged in. That nobody is, is no error: each page begins with this question.
func (s *sessions) show(w http.ResponseWriter, r *http.Request) {
	token := tokenOf(r)
	if token == "" {
		tell(w, http.StatusOK, opened{})
		return
	}
	status, body := s.call(r, http.MethodGet, nil, token)
	switch status {
	case http.StatusOK:
		answer := opened{Csrf: forgeryToken(token)}
		if err := json.Unmarshal(body, &answer.Session); err == nil {
			tell(w, http.StatusOK, answer)
			return
		}
		refuse(w, fault.New(fault.Internal, "the API's answer could not be read"))
	case http.StatusUnauthorized, http.StatusForbidden: // it was revoked, or has expired
		s.forget(w, r)
		tell(w, http.StatusOK, opened{})
	default:
		pass(w, status, body)
	}
}

// open logs in. Another site cannot do it for somebody: it could lead them into a session of its own.
func (s *sessions) open(w http.ResponseWriter, r *http.Request) {
	if !sameOrigin(r) || r.Header.Get("Content-Type") != "application/json" {
		refuse(w, fault.New(fault.Denied, "this request does not come from a page of the console"))
		return
	}
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxLogin))
	if err != nil {
		refuse(w, fault.New(fault.Invalid, "the request's body could not be read"))
		return
	}
	status, body := s.call(r, http.MethodPost, request, "")
	var issued api.IssuedToken
	if status != http.StatusOK || json.Unmarshal(body, &issued) != nil {
		pass(w, status, body)
		return
	}
	cookie := s.cookie(r, issued.Token) //nolint:gosec // see cookie
	if issued.ExpiresAt != nil {
		cookie.MaxAge = max(1, int(time.Until(*issued.ExpiresAt).Seconds()))
	}
	http.SetCookie(w, cookie)
	tell(w, http.StatusOK, opened{Csrf: forgeryToken(issued.Token)})
}

// close logs out: the token is revoked, and forgotten.
func (s *sessions) close(w http.ResponseWriter, r *http.Request) {
	token := tokenOf(r)
	if token == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := ours(r, token); err != nil {
		refuse(w, err)
		return
	}
	status, body := s.call(r, http.MethodDelete, nil, token)
	if status >= http.StatusInternalServerError {
		pass(w, status, body)
		return
	}
	s.forget(w, r)
	w.WriteHeader(http.StatusNoContent)
}

// pass hands a request to the API as the one who is logged in.
func (s *sessions) pass(w http.ResponseWriter, r *http.Request) {
	token := tokenOf(r)
	if token == "" && r.Header.Get("Authorization") != "" { // a command that was told this address
		tell(w, http.StatusUnauthorized, api.Problem{
			Kind: fault.Denied.String(), Message: "this is the console's address: it takes logins of browsers, and no tokens",
			Hint: "name the server's own port, which is 8140 if nobody chose another: --server https://HOST:8140",
		})
		return
	}
	r.Header.Del("Authorization") // a browser's habits are nobody's proof
	r.Header.Del("X-Authentication")
	r.Header.Del("Cookie")
	if token != "" {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := ours(r, token); err != nil {
				refuse(w, err)
				return
			}
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	s.api.ServeHTTP(w, r)
}

// call asks the API for something of the session.
func (s *sessions) call(r *http.Request, method string, body []byte, token string) (status int, answer []byte) {
	inner := r.Clone(context.WithoutCancel(r.Context())) // a token that was made is either kept or revoked
	inner.Method, inner.RequestURI = method, api.Prefix+"/session"
	inner.URL.Path, inner.URL.RawPath, inner.URL.RawQuery = inner.RequestURI, "", ""
	inner.Header = http.Header{"User-Agent": r.Header["User-Agent"]}
	inner.Body, inner.ContentLength = http.NoBody, 0
	if body != nil {
		inner.Header.Set("Content-Type", "application/json")
		inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if token != "" {
		inner.Header.Set("Authorization", "Bearer "+token)
	}
	kept := &memory{head: http.Header{}, status: http.StatusOK}
	s.api.ServeHTTP(kept, inner)
	return kept.status, kept.body.Bytes()
}

// cookie holds a token: scripts cannot read it, and no other site's page can make the browser send it.
func (s *sessions) cookie(r *http.Request, token string) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // console_plain is for loopback only, which has no TLS
		Name: cookieName, Value: token, Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}

func (s *sessions) forget(w http.ResponseWriter, r *http.Request) {
	gone := s.cookie(r, "") //nolint:gosec // see cookie
	gone.MaxAge = -1
	http.SetCookie(w, gone)
}

func tokenOf(r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// ours returns nil for an act that a page of the console sent.
func ours(r *http.Request, token string) error {
	shown := []byte(r.Header.Get(forgeryHeader))
	if !sameOrigin(r) || !hmac.Equal(shown, []byte(forgeryToken(token))) {
		return fault.New(fault.Denied, "this request does not show the session's token against forged requests; reload the page")
	}
	return nil
}

// sameOrigin says whether the browser says that a page of this origin asks. Older browsers say nothing.
func sameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}

// forgeryToken is what a page shows with its acts: only who has the session's token can make it, and it does not tell that token.
func forgeryToken(token string) string {
	sum := hmac.New(sha256.New, []byte(token))
	_, _ = sum.Write([]byte("acts of the console"))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

func refuse(w http.ResponseWriter, err error) {
	tell(w, api.StatusOf(err), api.Problem{Kind: fault.Of(err).String(), Message: fault.Detail(err)})
}

func tell(w http.ResponseWriter, status int, value any) {
	text, _ := json.Marshal(value) // words always encode
	pass(w, status, text)
}

func pass(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller is gone if this fails
}

// memory keeps a small answer.
type memory struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

func (m *memory) Header() http.Header                { return m.head }
func (m *memory) WriteHeader(status int)             { m.status = status }
func (m *memory) Write(text []byte) (n int, _ error) { return m.body.Write(text) }
