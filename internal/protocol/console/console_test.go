package console_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/protocol/console"
)

const token = "tutti_0123456789abcdef"

// theAPI answers like the API: it knows one token, and says how it was asked.
func theAPI(w http.ResponseWriter, r *http.Request) {
	who := r.Header.Get("Authorization")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/api/v1/session":
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "right") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"denied","message":"wrong"}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"1","user":"ann","created_at":"2026-01-01T00:00:00Z","token":"`+token+`"}`)
	case who != "Bearer "+token:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/api/v1/session":
		_, _ = io.WriteString(w, `{"kind":"user","name":"ann","roles":["viewer"],"grants":[]}`)
	default:
		_, _ = io.WriteString(w, `"`+r.Method+" "+who+" "+r.Header.Get("Cookie")+`"`)
	}
}

func newConsole(t *testing.T) http.Handler {
	t.Helper()
	h, err := console.New(console.Config{API: http.HandlerFunc(theAPI)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, path, body string, head ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(head); i += 2 {
		r.Header.Add(head[i], head[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every page has a policy with a nonce of its own, and the nonce is in it.
func TestPagesAreGuarded(t *testing.T) {
	t.Parallel()
	h := newConsole(t)
	nonces := map[string]bool{}
	for _, path := range []string{"/", "/nodes/web-1.example.test", "/jobs?state=failed"} {
		w := ask(h, http.MethodGet, path, "")
		policy := w.Header().Get("Content-Security-Policy")
		nonce := regexp.MustCompile(`'nonce-([^']+)'`).FindStringSubmatch(policy)
		if w.Code != http.StatusOK || len(nonce) != 2 || !strings.Contains(w.Body.String(), `nonce="`+nonce[1]+`"`) {
			t.Fatalf("%s: %d, %q\n%s", path, w.Code, policy, w.Body)
		}
		if nonces[nonce[1]] {
			t.Errorf("%s has the nonce of another answer", path)
		}
		nonces[nonce[1]] = true
		for _, part := range []string{"default-src 'self'", "script-src 'self';", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy lacks %s: %s", path, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || w.Header().Get("Cache-Control") != "no-cache" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	if w := ask(h, http.MethodPost, "/", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a page was posted to: %d", w.Code)
	}
}

// Files whose names say what is in them are kept for good, and come packed to those who can read that.
func TestAssets(t *testing.T) {
	t.Parallel()
	h := newConsole(t)
	found := regexp.MustCompile(`/assets/[^"]+\.js`).FindString(ask(h, http.MethodGet, "/", "").Body.String())
	whole, packed := ask(h, http.MethodGet, found, ""), ask(h, http.MethodGet, found, "", "Accept-Encoding", "gzip")
	if whole.Code != http.StatusOK || !strings.Contains(whole.Header().Get("Cache-Control"), "immutable") || whole.Header().Get("Content-Encoding") != "" {
		t.Errorf("%s: %d %v", found, whole.Code, whole.Header())
	}
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() >= whole.Body.Len() {
		t.Errorf("%s is not packed: %v", found, packed.Header())
	}
	if w := ask(h, http.MethodGet, "/assets/old.js", ""); w.Code != http.StatusNotFound || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("a file of an older server: %d %v", w.Code, w.Header())
	}
}

// The token is in a cookie that scripts cannot read; the API gets it, and acts need the token against forged requests.
func TestSessions(t *testing.T) {
	t.Parallel()
	h := newConsole(t)
	if w := ask(h, http.MethodGet, "/session", ""); w.Body.String() != "{}" || w.Code != http.StatusOK {
		t.Errorf("nobody: %d %s", w.Code, w.Body)
	}
	if w := ask(h, http.MethodPost, "/session", `{"password":"wrong"}`, "Content-Type", "application/json"); w.Code != http.StatusForbidden ||
		len(w.Result().Cookies()) > 0 {
		t.Errorf("a wrong password: %d %s", w.Code, w.Body)
	}
	for _, head := range [][]string{{"Content-Type", "text/plain"}, {"Content-Type", "application/json", "Sec-Fetch-Site", "cross-site"}} {
		if w := ask(h, http.MethodPost, "/session", `{"password":"right"}`, head...); w.Code != http.StatusForbidden {
			t.Errorf("another site's login, %v: %d", head, w.Code)
		}
	}
	w := ask(h, http.MethodPost, "/session", `{"password":"right"}`, "Content-Type", "application/json")
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 || strings.Contains(w.Body.String(), token) {
		t.Fatalf("login: %d %s %v", w.Code, w.Body, cookies)
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure {
		t.Errorf("the cookie is %+v", c)
	}
	var opened struct{ Csrf string }
	if err := json.Unmarshal(w.Body.Bytes(), &opened); err != nil || opened.Csrf == "" {
		t.Fatalf("%v: %s", err, w.Body)
	}
	cookie := "tutti_session=" + token
	if w := ask(h, http.MethodGet, "/session", "", "Cookie", cookie); !strings.Contains(w.Body.String(), `"name":"ann"`) ||
		strings.Contains(w.Body.String(), token) {
		t.Errorf("who am I: %s", w.Body)
	}
	for name, c := range map[string]struct {
		method string
		head   []string
		status int
	}{
		"a question":                      {http.MethodGet, []string{"Cookie", cookie}, http.StatusOK},
		"a question with another's token": {http.MethodGet, []string{"Cookie", cookie, "Authorization", "Bearer other"}, http.StatusOK},
		"a question without a cookie":     {http.MethodGet, []string{"Authorization", "Bearer " + token}, http.StatusUnauthorized},
		"an act without the token":        {http.MethodPost, []string{"Cookie", cookie}, http.StatusForbidden},
		"an act with a wrong token":       {http.MethodPost, []string{"Cookie", cookie, "X-Tutti-Csrf", "x"}, http.StatusForbidden},
		"an act of another site": {
			http.MethodDelete, []string{"Cookie", cookie, "X-Tutti-Csrf", opened.Csrf, "Sec-Fetch-Site", "same-site"}, http.StatusForbidden,
		},
		"an act": {http.MethodPost, []string{"Cookie", cookie, "X-Tutti-Csrf", opened.Csrf}, http.StatusOK},
		"an act of a page that says its own": {
			http.MethodPut, []string{"Cookie", cookie, "X-Tutti-Csrf", opened.Csrf, "Sec-Fetch-Site", "same-origin"}, http.StatusOK,
		},
	} {
		w := ask(h, c.method, "/api/v1/nodes", "", c.head...)
		if w.Code != c.status || c.status == http.StatusOK && w.Body.String() != `"`+c.method+" Bearer "+token+` "` {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := ask(h, http.MethodGet, "/api/v1/nodes", "", "Authorization", "Bearer "+token); !strings.Contains(w.Body.String(), "--server https://HOST:8140") {
		t.Errorf("a command at the console's address is told: %s", w.Body)
	}
	if w := ask(h, http.MethodDelete, "/session", "", "Cookie", cookie); w.Code != http.StatusForbidden {
		t.Errorf("a forged logout: %d", w.Code)
	}
	if w := ask(h, http.MethodDelete, "/session", "", "Cookie", cookie, "X-Tutti-Csrf", opened.Csrf); w.Code != http.StatusNoContent ||
		w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %d %v", w.Code, w.Header())
	}
	old := ask(h, http.MethodGet, "/session", "", "Cookie", "tutti_session=tutti_revoked")
	if old.Body.String() != "{}" || old.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("a session that was revoked: %s %v", old.Body, old.Header())
	}
}
