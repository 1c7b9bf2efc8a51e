package codemanager

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/code/source/sourcetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

const secret = "0123456789abcdef0123456789abcdef"

// bench is a handler over a real service that runs.
type bench struct {
	*testing.T
	handler http.Handler
	service *source.Service
	repo    *sourcetest.Repositories
	deploys *sourcetest.Deployer
	acts    *rbactest.Fake
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, repo: &sourcetest.Repositories{}, deploys: &sourcetest.Deployer{}, acts: rbactest.New()}
	log := slog.New(slog.DiscardHandler)
	var err error
	b.service, err = source.Open(t.Context(), source.Parts{
		Store: sourcetest.NewStore(), Sealer: sourcetest.Seals{}, Repositories: b.repo, Modules: sourcetest.Modules(nil), Deployer: b.deploys, Blobs: castest.New(),
		Dir: t.TempDir(), Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.service.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b.repo.Push("production", map[string]string{"manifests/site.pp": ""})
	_, err = b.service.Add(t.Context(), source.Source{Name: "control", Secrets: source.Secrets{URL: "https://git.example/team/control.git", Webhook: secret}},
		false)
	if err != nil {
		t.Fatal(err)
	}
	b.handler = New(Config{
		Sources: b.service, Audit: rbac.NewAudit(b.acts, log), Entry: func(context.Context) rbac.Entry { return rbac.Entry{At: time.Now()} },
		RequestID: func(context.Context) string { return "r-1" }, Log: log, Actor: actor,
	})
	b.settle()
	return b
}

// actor is who shows a token with their name.
func actor(r *http.Request) (fleet.Actor, error) {
	grants := map[string][]fleet.Grant{
		"deployer": {{Permission: fleet.CodeDeploy}, {Permission: fleet.CodeRead}},
		"scoped":   {{Permission: fleet.CodeDeploy, Environments: []string{"dev_*"}}, {Permission: fleet.CodeRead, Environments: []string{"dev_*"}}},
		"viewer":   {{Permission: fleet.NodeRead}},
	}
	name := r.Header.Get("X-Authentication")
	if name == "" {
		return fleet.Actor{Kind: fleet.Anonymous}, nil
	}
	if grants[name] == nil {
		return fleet.Actor{Kind: fleet.Anonymous}, fault.New(fault.Denied, "the token is not valid")
	}
	return fleet.Actor{Kind: fleet.UserActor, Name: name, Grants: grants[name]}, nil
}

// settle waits until the source was looked at and everything is deployed.
func (b *bench) settle() {
	b.Helper()
	for {
		s, err := b.service.Source("control")
		if err != nil {
			b.Fatal(err)
		}
		branches := b.service.Branches("")
		if !s.LookedAt.IsZero() && len(branches) > 0 && branches[0].State != source.Queued && branches[0].State != source.Deploying {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func (b *bench) ask(method, path, token, body string, head ...string) (int, map[string]any, []map[string]any) {
	b.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("X-Authentication", token)
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	var object map[string]any
	var list []map[string]any
	text := bytes.TrimSpace(w.Body.Bytes())
	into := any(&object)
	if bytes.HasPrefix(text, []byte("[")) {
		into = &list
	}
	if err := json.Unmarshal(text, into); err != nil || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		b.Fatalf("%s %s answers no JSON: %s", method, path, text)
	}
	return w.Code, object, list
}

func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// Each git server proves in its own way that it knows the secret; then what was pushed is deployed.
func TestWebhooksOfEachGitServer(t *testing.T) {
	t.Parallel()
	body := `{"ref":"refs/heads/production","after":"0000000000000000000000000000000000000000"}`
	basic := httptest.NewRequest(http.MethodGet, "/", nil)
	basic.SetBasicAuth("anybody", secret)
	for kind, head := range map[string][]string{
		"github":           {"X-Hub-Signature-256", "sha256=" + sign(body)},
		"gitea":            {"X-Gitea-Signature", sign(body)},
		"forgejo":          {"X-Forgejo-Signature", sign(body)},
		"gitlab":           {"X-Gitlab-Token", secret},
		"bitbucket":        {"X-Hub-Signature", "sha256=" + sign(body)},
		"bitbucket-server": {"X-Hub-Signature", "sha256=" + sign(body)},
		"stash":            {"X-Hub-Signature", "sha256=" + sign(body)},
		"azure":            {"Authorization", basic.Header.Get("Authorization")},
		"tfs-git":          {"Authorization", basic.Header.Get("Authorization")},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			last := b.repo.Push("production", map[string]string{"manifests/site.pp": "# 2"})
			path := Prefix + "/webhook?source=control&type=" + kind
			for range 3 { // a delivery that comes again does no harm
				if status, answer, _ := b.ask(http.MethodPost, path, "", body, head...); status != http.StatusOK || answer["status"] != "OK" {
					t.Fatalf("%d %v", status, answer)
				}
			}
			for b.service.Branches("")[0].Commit != last {
				<-time.After(time.Millisecond)
			}
			if n := len(b.deploys.Deployed()); n != 2 && n != 3 { // what comes before a deploy knows its commit asks for one more
				t.Errorf("deployed %d times", n)
			}
			for _, wrong := range [][]string{nil, {head[0], head[1][:len(head[1])-1]}, {head[0], "sha256="}, {head[0], ""}} {
				if status, answer, _ := b.ask(http.MethodPost, path, "", body, wrong...); status != http.StatusUnauthorized ||
					answer["kind"] != "puppetlabs.rbac/user-unauthenticated" {
					t.Errorf("with %q: %d %v", wrong, status, answer)
				}
			}
			if kind != "gitlab" && kind != "azure" && kind != "tfs-git" {
				if status, _, _ := b.ask(http.MethodPost, path, "", body+" ", head...); status != http.StatusUnauthorized {
					t.Errorf("another body: %d", status)
				}
			}
			done, err := b.acts.Acts(t.Context(), rbac.EntryFilter{Outcome: rbac.Done, Limit: 10})
			if err != nil || len(done) != 3 || done[0].Object != "source control" {
				t.Errorf("the audit log has %+v, %v", done, err)
			}
		})
	}
}

// What a body says of branches decides nothing.
func TestOddBranchesInAWebhook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, branch := range []string{"../../etc", "a;rm -rf /", "a b", strings.Repeat("x", 200), "--upload-pack=id", "\x00"} {
		text, err := json.Marshal(map[string]any{"ref": "refs/heads/" + branch})
		if err != nil {
			t.Fatal(err)
		}
		status, answer, _ := b.ask(http.MethodPost, Prefix+"/webhook?type=github&source=control", "", string(text), "X-Hub-Signature-256",
			"sha256="+sign(string(text)))
		if status != http.StatusOK {
			t.Errorf("%q: %d %v", branch, status, answer)
		}
	}
	if n := len(b.service.Branches("")); n != 1 {
		t.Errorf("there are %d branches", n)
	}
}

func TestWebhooksThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	large := strings.Repeat(" ", maxWebhookBytes+1)
	for name, c := range map[string]struct {
		path, token, body string
		head              []string
		status            int
		kind              string
	}{
		"unknown type":   {"?type=svn&source=control", "", "{}", nil, 400, "puppetlabs.code-manager/unrecognized-webhook-type"},
		"no type":        {"?source=control", "", "{}", nil, 400, "puppetlabs.code-manager/unrecognized-webhook-type"},
		"no source":      {"?type=github", "", "{}", []string{"X-Hub-Signature-256", "sha256=" + sign("{}")}, 401, "puppetlabs.rbac/user-unauthenticated"},
		"unknown source": {"?type=github&source=x", "", "{}", []string{"X-Hub-Signature-256", "sha256=" + sign("{}")}, 401, "puppetlabs.rbac/user-unauthenticated"},
		"no JSON":        {"?type=gitlab&source=control", "", "x", []string{"X-Gitlab-Token", secret}, 400, "puppetlabs.code-manager/invalid-request"},
		"form": {
			"?type=gitlab&source=control", "", "payload=x",
			[]string{"X-Gitlab-Token", secret, "Content-Type", "application/x-www-form-urlencoded"},
			415,
			"puppetlabs.code-manager/unsupported-type",
		},
		"too large":        {"?type=gitlab&source=control", "", large, []string{"X-Gitlab-Token", secret}, 413, "puppetlabs.code-manager/payload-too-large"},
		"wrong token":      {"?type=github&token=x", "", "{}", nil, 401, "puppetlabs.rbac/user-unauthenticated"},
		"may not":          {"?type=github&token=viewer", "", "{}", nil, 403, "puppetlabs.code-manager/not-permitted"},
		"may some":         {"?type=github&token=scoped", "", "{}", nil, 403, "puppetlabs.code-manager/not-permitted"},
		"other repository": {"?type=github", "deployer", `{"repository":{"clone_url":"https://git.example/other"}}`, nil, 404, "puppetlabs.code-manager/not-found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer, _ := b.ask(http.MethodPost, Prefix+"/webhook"+c.path, c.token, c.body, c.head...)
			if status != c.status || answer["kind"] != c.kind || answer["msg"] == "" {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
}

// A token's webhook finds the source by the repository, as each git server names it.
func TestWebhooksByToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, body := range map[string]string{
		"github":           `{"repository":{"clone_url":"https://git.example/team/control.git","full_name":"team/control"}}`,
		"gitlab":           `{"project":{"git_ssh_url":"git@git.example:team/control.git"}}`,
		"gitea":            `{"repository":{"ssh_url":"ssh://git@GIT.example:2222/team/control.git"}}`,
		"bitbucket":        `{"repository":{"links":{"html":{"href":"https://git.example/team/control"}}}}`,
		"bitbucket-server": `{"repository":{"links":{"clone":[{"href":"https://git.example/team/control.git"}]}}}`,
		"azure":            `{"resource":{"repository":{"remoteUrl":"https://me@git.example/team/control"}}}`,
	} {
		if status, answer, _ := b.ask(http.MethodPost, Prefix+"/webhook?token=deployer&type="+name, "", body); status != http.StatusOK {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	if status, _, _ := b.ask(http.MethodPost, Prefix+"/webhook?type=github&source=control&prefix=web", "deployer", "{}"); status != http.StatusNotFound {
		t.Errorf("of another prefix: %d", status)
	}
}

func TestDeploys(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	commit := b.repo.Push("dev_x", map[string]string{"manifests/site.pp": "# new"}) // nobody heard of it yet
	status, _, list := b.ask(http.MethodPost, Prefix+"/deploys", "deployer", `{"environments":["dev_x","nothing"],"wait":true}`)
	if status != http.StatusOK || len(list) != 2 {
		t.Fatalf("%d %v", status, list)
	}
	if list[0]["environment"] != "nothing" || list[0]["status"] != "failed" ||
		list[0]["error"].(map[string]any)["kind"] != "puppetlabs.code-manager/deploy-failure" {
		t.Errorf("%v", list[0])
	}
	if list[1]["status"] != "complete" || list[1]["deploy-signature"] != commit || list[1]["file-sync"] == nil {
		t.Errorf("%v", list[1])
	}
	b.deploys.Refuse(fault.New(fault.Conflict, "the code has 1 mistake"))
	_, _, list = b.ask(http.MethodPost, Prefix+"/deploys", "scoped", `{"deploy-all":true,"wait":true}`)
	if len(list) != 1 || list[0]["environment"] != "dev_x" || list[0]["status"] != "failed" {
		t.Errorf("all that the scoped may deploy: %v", list)
	}
	_, answer, _ := b.ask(http.MethodGet, Prefix+"/deploys/status", "deployer", "")
	deploys := answer["deploys-status"].(map[string]any)
	if len(deploys["failed"].([]any)) != 1 || len(deploys["queued"].([]any)) != 0 ||
		len(answer["file-sync-storage-status"].(map[string]any)["deployed"].([]any)) != 2 {
		t.Errorf("%v", answer)
	}
	_, answer, _ = b.ask(http.MethodGet, Prefix+"/deploys/status?id=999", "scoped", "")
	if len(answer["deploys-status"].(map[string]any)["failed"].([]any)) != 0 {
		t.Errorf("%v", answer)
	}
	_, _, list = b.ask(http.MethodPost, Prefix+"/deploys", "deployer", `{"deploy-all":true,"dry-run":true}`)
	if diff := cmp.Diff([]map[string]any{{"environment": "dev_x", "status": "new"}, {"environment": "production", "status": "new"}}, list); diff != "" {
		t.Error(diff)
	}
}

// What a repository that cannot be reached would have had is not taken for nothing.
func TestDeploysOfARepositoryThatCannotBeReached(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.repo.Fail(fault.New(fault.Unavailable, "it did not come in time"))
	_, _, list := b.ask(http.MethodPost, Prefix+"/deploys", "deployer", `{"environments":["dev_x"],"wait":true}`)
	if problem, _ := list[0]["error"].(map[string]any); list[0]["status"] != "failed" ||
		!strings.Contains(problem["msg"].(string), "source control: it did not come in time") {
		t.Errorf("a branch that nobody heard of: %v", list)
	}
	status, answer, list := b.ask(http.MethodPost, Prefix+"/deploys", "scoped", `{"deploy-all":true}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(answer["msg"].(string), "source control: it did not come in time") {
		t.Errorf("all of none: %d %v %v", status, answer, list)
	}
	if _, _, list = b.ask(http.MethodPost, Prefix+"/deploys", "deployer", `{"deploy-all":true,"wait":true}`); len(list) != 1 || list[0]["status"] != "failed" {
		t.Errorf("all of one: %v", list)
	}
}

func TestDeploysThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		method, path, token, body string
		status                    int
		kind                      string
	}{
		"nobody":             {"POST", "/deploys", "", "{}", 401, "puppetlabs.rbac/user-unauthenticated"},
		"wrong token":        {"POST", "/deploys", "x", "{}", 401, "puppetlabs.rbac/user-unauthenticated"},
		"may not":            {"POST", "/deploys", "viewer", "{}", 403, "puppetlabs.code-manager/not-permitted"},
		"may another":        {"POST", "/deploys", "scoped", `{"environments":["production"]}`, 403, "puppetlabs.code-manager/not-permitted"},
		"none":               {"POST", "/deploys", "deployer", "{}", 400, "puppetlabs.code-manager/invalid-request"},
		"both":               {"POST", "/deploys", "deployer", `{"environments":["a"],"deploy-all":true}`, 400, "puppetlabs.code-manager/invalid-request"},
		"a name":             {"POST", "/deploys", "deployer", `{"environments":["../a"]}`, 400, "puppetlabs.code-manager/invalid-request"},
		"a type":             {"POST", "/deploys", "deployer", `{"environments":"a"}`, 400, "puppetlabs.code-manager/invalid-request"},
		"modules":            {"POST", "/deploys", "deployer", `{"environments":["production"],"modules":["a"]}`, 400, "puppetlabs.code-manager/invalid-request"},
		"no JSON":            {"POST", "/deploys", "deployer", `{`, 400, "puppetlabs.code-manager/invalid-request"},
		"too large":          {"POST", "/deploys", "deployer", strings.Repeat(" ", maxDeploysBytes+1), 413, "puppetlabs.code-manager/payload-too-large"},
		"method":             {"DELETE", "/deploys", "deployer", "", 405, "puppetlabs.code-manager/method-not-allowed"},
		"path":               {"GET", "/x", "deployer", "", 404, "puppetlabs.code-manager/not-found"},
		"a number":           {"GET", "/deploys/status?id=x", "deployer", "", 400, "puppetlabs.code-manager/invalid-request"},
		"status for nobody":  {"GET", "/deploys/status", "", "", 401, "puppetlabs.rbac/user-unauthenticated"},
		"status for viewers": {"GET", "/deploys/status", "viewer", "", 403, "puppetlabs.code-manager/not-permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer, _ := b.ask(c.method, Prefix+c.path, c.token, c.body)
			if status != c.status || answer["kind"] != c.kind || answer["msg"] == "" {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
}
