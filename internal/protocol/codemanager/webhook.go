package codemanager

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// maxWebhookBytes is the largest body of a webhook: GitHub sends no larger one.
const maxWebhookBytes = 25 << 20

// proof tells whether a request proves that its sender knows the secret.
type proof func(r *http.Request, body []byte, secret string) bool

// proofs is how the git servers prove who they are, by the parameter type.
var proofs = map[string]proof{
	"github":           signed("X-Hub-Signature-256", "sha256="),
	"gitea":            signed("X-Gitea-Signature", ""),
	"forgejo":          signed("X-Forgejo-Signature", ""),
	"bitbucket":        signed("X-Hub-Signature", "sha256="),
	"bitbucket-server": signed("X-Hub-Signature", "sha256="),
	"stash":            signed("X-Hub-Signature", "sha256="),
	"gitlab": func(r *http.Request, _ []byte, secret string) bool {
		return equal(r.Header.Get("X-Gitlab-Token"), secret)
	},
	"azure":   password,
	"tfs-git": password,
}

// signed is the proof by a signature of the body (HMAC with SHA-256, hexadecimal) in a header.
func signed(header, before string) proof {
	return func(r *http.Request, body []byte, secret string) bool {
		text, ok := strings.CutPrefix(r.Header.Get(header), before)
		given, err := hex.DecodeString(text)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		return ok && err == nil && hmac.Equal(given, mac.Sum(nil))
	}
}

// password is the proof by the password of basic authentication, whatever the user's name is.
func password(r *http.Request, _ []byte, secret string) bool {
	_, given, ok := r.BasicAuth()
	return ok && equal(given, secret)
}

// equal compares in a time that tells nothing of either, not even the length.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func (h *handler) webhook(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	proves := proofs[query.Get("type")]
	if proves == nil {
		types := slices.Sorted(maps.Keys(proofs))
		return h.errors.Bad(unknownType, map[string]any{"types": types}, "the parameter type is %.40q, and none of %s", query.Get("type"), strings.Join(types, ", "))
	}
	if query.Get("token") != "" || r.Header.Get("X-Authentication") != "" || strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return h.byToken(w, r)
	}
	return h.bySecret(w, r, proves)
}

// bySecret takes a webhook that is signed with the secret of the source that it names. Whoever has the secret wrong learns nothing of which
// sources there are.
func (h *handler) bySecret(w http.ResponseWriter, r *http.Request, proves proof) error {
	name := r.URL.Query().Get("source")
	all := h.Sources.Sources()
	at := slices.IndexFunc(all, func(s source.Source) bool { return s.Name == name && s.Secrets.Webhook != "" })
	denied := pejson.Stranger(fault.New(fault.Denied,
		"the webhook is not signed with the secret of a source: the address must have the parameter source, and the git server "+
			"the secret that `tutti code source add --webhook-secret-file` was given; or the address has the parameter token"))
	if at < 0 {
		return h.refused(r, name, denied)
	}
	body, err := h.body(w, r)
	if err != nil {
		return err
	}
	if !proves(r, body, all[at].Secrets.Webhook) {
		return h.refused(r, name, denied)
	}
	if err := h.object(body); err != nil {
		return err
	}
	return h.hint(w, r, name)
}

// byToken takes a webhook of somebody who may deploy all code.
func (h *handler) byToken(w http.ResponseWriter, r *http.Request) error {
	r, actor, err := h.asked(r)
	if err == nil {
		err = rbac.Allow(actor, fleet.CodeDeploy, fleet.Object{})
	}
	if err != nil {
		return h.refused(r, "", err)
	}
	body, err := h.body(w, r)
	if err == nil {
		err = h.object(body)
	}
	if err != nil {
		return err
	}
	query := r.URL.Query()
	pushed := repositoriesOf(body)
	var names []string
	for _, s := range h.Sources.Sources() {
		named := query.Get("source") == s.Name || query.Get("source") == "" && pushed[canonical(s.URL)]
		if named && (query.Get("prefix") == "" || query.Get("prefix") == s.Prefix) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return h.errors.Bad(pejson.NotFound, nil,
			"no source is of the repository that the webhook names: `tutti code source list` shows them; the parameter source names one")
	}
	return h.hint(w, r, names...)
}

// body reads a webhook's body.
func (h *handler) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhookBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, h.errors.Bad(pejson.TooLarge, nil, "the body is larger than %d bytes, which is what is taken here", maxWebhookBytes)
	}
	return body, err
}

// object refuses a body that is no JSON object.
func (h *handler) object(body []byte) error {
	var anything map[string]json.RawMessage
	return h.errors.Decode(body, invalid, &anything)
}

// hint has the sources looked at, and answers at once.
func (h *handler) hint(w http.ResponseWriter, r *http.Request, names ...string) error {
	return h.recorded(r, "source "+strings.Join(names, " "), func() error {
		for _, name := range names {
			if err := h.Sources.Hint(name); err != nil {
				return err
			}
		}
		pejson.Write(w, http.StatusOK, map[string]string{"status": "OK"})
		return nil
	})
}

// maxDeep is how deep addresses are looked for in a body; GitLab's and Bitbucket's lie deepest.
const maxDeep = 5

// repositoriesOf is the addresses of the repository that was pushed to: all that the body has of it.
func repositoriesOf(body []byte) map[string]bool {
	var push struct {
		Repository any `json:"repository"`
		Project    any `json:"project"`
		Resource   struct {
			Repository any `json:"repository"`
		} `json:"resource"`
	}
	found := map[string]bool{}
	if json.Unmarshal(body, &push) != nil {
		return found
	}
	var walk func(value any, deep int)
	walk = func(value any, deep int) {
		switch v := value.(type) {
		case string:
			if address := canonical(v); address != "" {
				found[address] = true
			}
		case map[string]any:
			for _, below := range v {
				if deep < maxDeep {
					walk(below, deep+1)
				}
			}
		case []any:
			for _, below := range v {
				if deep < maxDeep {
					walk(below, deep+1)
				}
			}
		}
	}
	for _, value := range []any{push.Repository, push.Project, push.Resource.Repository} {
		walk(value, 0)
	}
	return found
}

// canonical is HOST/PATH of a repository's address, however it is reached; empty for what is no address.
func canonical(address string) string {
	host, path := "", ""
	if u, err := url.Parse(address); err == nil && u.Scheme != "" && u.Host != "" {
		host, path = u.Hostname(), u.Path
	} else if before, after, ok := strings.Cut(address, ":"); ok && !strings.Contains(address, "://") && !strings.ContainsAny(before, "/ ") {
		host, path = before[strings.LastIndexByte(before, '@')+1:], after
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if host == "" || path == "" {
		return ""
	}
	return strings.ToLower(host) + "/" + path
}
