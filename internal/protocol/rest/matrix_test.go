package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

// who is a caller of the matrix.
type who struct {
	name  string
	actor fleet.Actor // of the certificate
	token string      // whose token is shown
}

// The callers: one for each built-in role, and those with something special.
var callers = []who{
	{name: "anonymous", actor: fleet.Actor{Kind: fleet.Anonymous}},
	{name: "wrong token", token: "guess"},
	{name: "expired", token: "old"},
	{name: "disabled", token: "gone"},
	{name: "node", actor: fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"}},
	{name: "no role", token: "plain"},
	{name: "viewer", token: "viewer"},
	{name: "auditor", token: "auditor"},
	{name: "deployer", token: "deployer"},
	{name: "operator", token: "operator"},
	{name: "commander", token: "commander"},
	{name: "web team", token: "web"},    // everything, but of production and web nodes only
	{name: "people", token: "people"},   // user:write and token:write, nothing else
	{name: "narrowed", token: "narrow"}, // an administrator's token that is narrowed to viewer
	{name: "node+role", actor: fleet.Actor{Kind: fleet.NodeActor, Name: "ci.example.test"}},
	{name: "cli_auth", actor: fleet.Actor{Kind: fleet.NodeActor, Name: "ops", Grants: []fleet.Grant{{Permission: fleet.Everything}}}},
	{name: "admin", token: "admin"},
}

var admin = callers[len(callers)-1]

// secret is the text of a user's token.
func secret(user string) string { return "tutti_secret_of_" + user }

// people is a store with the users behind the callers.
func people(t *testing.T) *rbactest.Fake {
	t.Helper()
	ctx, s := t.Context(), rbactest.New()
	var scoped []fleet.Grant
	for _, p := range fleet.Permissions() {
		switch thing, _, _ := strings.Cut(string(p), ":"); thing {
		case "code", "report", "preview", "release", "policy":
			scoped = append(scoped, fleet.Grant{Permission: p, Environments: []string{"prod*"}})
		default:
			scoped = append(scoped, fleet.Grant{Permission: p, Nodes: webCondition})
		}
	}
	check(t, s.CreateRole(ctx, rbac.Role{Name: "web", Grants: scoped}))
	check(t, s.CreateRole(ctx, rbac.Role{Name: "people", Grants: []fleet.Grant{{Permission: fleet.UserWrite}, {Permission: fleet.TokenWrite}}}))
	roles := map[string]string{"old": rbac.Administrator, "gone": rbac.Administrator, "narrow": rbac.Administrator, "admin": rbac.Administrator, "plain": ""}
	for _, name := range []string{"viewer", "auditor", "deployer", "operator", "commander", "web", "people"} {
		roles[name] = name
	}
	for name, role := range roles {
		user := rbac.User{Name: name, Kind: rbac.Person, Disabled: name == "gone"}
		if role != "" {
			user.Roles = []string{role}
		}
		check(t, s.CreateUser(ctx, user))
		hash, _ := rbac.HashOf(secret(name))
		token := rbac.Token{ID: "t-" + name, Hash: hash, Owner: name}
		if name == "old" {
			token.ExpiresAt = time.Now().Add(-time.Hour)
		}
		if name == "narrow" {
			token.Roles, token.Narrowed = []string{"viewer"}, true
		}
		check(t, s.SaveAccessToken(ctx, token))
	}
	check(t, s.CreateUser(ctx, rbac.User{Name: "zed", Kind: rbac.Person})) // whom nobody of them is
	check(t, s.CreateUser(ctx, rbac.User{Name: "ci.example.test", Kind: rbac.Node, Roles: []string{"deployer"}}))
	return s
}

// path fills an operation's path with what is the caller's own, or with what is not.
func (b bench) path(op api.Operation, caller who, own bool, foreign string) string {
	node, env, report, user := "db-1", "other", foreign, "zed"
	if own {
		node, env, report, user = "web-1", "production", b.report, caller.token
	}
	if user == "" {
		user = api.Me
	}
	return api.Prefix +
		strings.NewReplacer("{name}", node, "{environment}", env, "{id}", report, "{compilation}", map[bool]string{true: "1", false: "2"}[own], "{user}", user,
			"{token}", "none", "{role}", "none", "{group}", "none", "{task}", "none", "{type}", "File", "{module}", "lamp", "{action}", "status",
			"{saved}", "none").Replace(op.Path)
}

// pastJob is a job that is over, which the caller ordered, or somebody else.
func (b bench) pastJob(t *testing.T, caller who, own bool) string {
	t.Helper()
	actor := fleet.Actor{Kind: fleet.UserActor, Name: "zed"}
	if own {
		actor.Name = caller.token
		if caller.token == "" {
			actor = caller.actor
		}
	}
	j, err := b.records.CreateJob(t.Context(), job.Job{
		Spec:  job.Spec{Kind: job.Command, Command: &job.CommandSpec{Command: "uptime"}, Targets: job.Targets{Nodes: []fleet.Certname{"web-1"}}},
		Actor: actor.Name, ActorKind: actor.Kind, Status: job.Queued, Counts: job.Counts{job.Waiting: 1},
	}, []job.Run{{ID: fmt.Sprintf("past-%s-%v-%d", actor.Name, own, time.Now().UnixNano()), Number: 1, Node: "web-1", State: job.Waiting}}, nil)
	check(t, err)
	end(t, b.records, j.ID, func(fleet.Certname) (int, string) { return 1, "" })
	return fmt.Sprint(j.ID)
}

// body is one that is refused as invalid where it can be: an allowed call may fail,
// but not with 401 or 403.
func body(op api.Operation) []byte {
	if op.Name == api.SessionOpen.Operation().Name {
		return []byte(`{"seconds":-1}`)
	}
	if op.Name == api.ActionAsk.Operation().Name {
		return []byte(`{"targets":{"nodes":["web-1"]}}`)
	}
	return []byte(`{}`)
}

// TestWhoMayDoWhat is complete by construction: every operation, with what is the
// caller's own and with what is not, for every caller.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	var matrix strings.Builder
	fmt.Fprintf(&matrix, "x: allowed, -: denied. web team has every permission, scoped to production or web nodes; people has user:write and\n"+
		"token:write only; narrowed is an administrator's token with the role viewer; node+role is a certificate with the role deployer.\n\n%-46s", "")
	for _, caller := range callers {
		fmt.Fprintf(&matrix, " %s", caller.name)
	}
	for _, op := range api.Operations() {
		for _, own := range []bool{true, false} {
			b, whose := newBench(t), "foreign"
			foreign := b.seed(t, "db-1", "other")
			if own {
				whose = "own"
			}
			fmt.Fprintf(&matrix, "\n%-46s", fmt.Sprintf("%-18s %-17s  %s", op.Name, op.Permission, whose))
			for _, caller := range callers {
				verdict := "x"
				path := b.path(op, caller, own, foreign)
				if strings.Contains(op.Path, "{job}") {
					path = strings.Replace(path, "{job}", b.pastJob(t, caller, own), 1)
				}
				some := b.somePreview
				if op.Name == api.PreviewEvents.Operation().Name {
					some = b.pastPreview // a stream of one that compiles would not end
				}
				path = strings.Replace(path, "{preview}", some(t, own), 1)
				path = strings.Replace(path, "{release}", b.someRelease(t, own), 1)
				if op.Name == api.EventStream.Operation().Name {
					path += "?after=never" // refused when it is allowed: it would not end
				}
				if w := b.call(caller, op.Method, path, body(op)); w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized {
					verdict = "-"
				}
				fmt.Fprintf(&matrix, " %-*s", len(caller.name), verdict)
			}
		}
	}
	golden(t, "testdata/permissions.golden", trimmed(matrix.String())+"\n")
}

// trimmed takes the spaces off the ends of lines.
func trimmed(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n")
}

func TestEveryOperationNamesAPermission(t *testing.T) {
	t.Parallel()
	given := map[fleet.Permission]bool{ // by other doors, and by handlers
		fleet.NodeAct: true, fleet.NodeControl: true, fleet.InventoryWrite: true, fleet.MetricsRead: true, fleet.TokenRead: true, fleet.TokenWrite: true,
	}
	for _, op := range api.Operations() {
		if op.Permission != fleet.Open && op.Permission != fleet.Self && !slices.Contains(fleet.Permissions(), op.Permission) {
			t.Errorf("%s: %q is not in fleet.Permissions", op.Name, op.Permission)
		}
		given[op.Permission] = true
	}
	for _, p := range fleet.Permissions() {
		if !given[p] {
			t.Errorf("no operation asks for %s", p)
		}
	}
}

func caller(t *testing.T, name string) who {
	t.Helper()
	i := slices.IndexFunc(callers, func(c who) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no caller %s", name)
	}
	return callers[i]
}

func TestDenialSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct{ caller, method, path, want string }{
		{"anonymous", "GET", "/nodes", "node:read needs a token or a client certificate; none was shown"},
		{"node", "GET", "/nodes", "node web-1 does not have the permission node:read"},
		{"expired", "GET", "/nodes", "expired"},
		{"viewer", "DELETE", "/nodes/web-1", "user viewer does not have the permission node:purge. Ask an administrator"},
		{"auditor", "DELETE", "/nodes/web-1", "permission node:purge. Roles that have it: administrator, operator, web. Ask admin or narrow or old"},
		{"narrowed", "DELETE", "/nodes/web-1", "this token of user narrow is narrowed to roles without the permission node:purge"},
		{"web team", "DELETE", "/nodes/db-1", `user web has the permission node:purge, but not for this: only for nodes with facts.role = "web"`},
		{"web team", "DELETE", "/environments/other", "user web has the permission code:deploy, but not for this: only for environment prod*"},
		{"viewer", "GET", "/users/zed/tokens", "user viewer does not have the permission token:read"},
		{"people", "PUT", "/users/admin", "user people does not have every permission, and so cannot decide who has it"},
	} {
		w := b.call(caller(t, c.caller), c.method, api.Prefix+c.path, []byte(`{}`))
		var problem api.Problem
		check(t, json.Unmarshal(w.Body.Bytes(), &problem))
		status := http.StatusForbidden
		if c.caller == "anonymous" || c.caller == "expired" {
			status = http.StatusUnauthorized
		}
		if w.Code != status || problem.Kind != "denied" || !strings.Contains(problem.Message, c.want) ||
			c.caller != "auditor" && strings.Contains(problem.Message, "Roles that have it") || problem.RequestID != "req-1" {
			t.Errorf("%s: got %d %+v, want %q", c.caller, w.Code, problem, c.want)
		}
	}
}

func TestListsShowWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	foreign := b.seed(t, "db-1", "other")
	for _, path := range []string{"/nodes", "/reports", "/events/history"} {
		for name, want := range map[string]bool{"web team": false, "viewer": true} {
			text := b.call(caller(t, name), "GET", api.Prefix+path, nil).Body.String()
			if !strings.Contains(text, "web-1") || strings.Contains(text, "db-1") != want {
				t.Errorf("%s as %s: %s", path, name, text)
			}
		}
	}
	if w := b.call(caller(t, "web team"), "GET", api.Prefix+"/reports/"+foreign, nil); w.Code != http.StatusForbidden {
		t.Errorf("a foreign report: %d %s", w.Code, w.Body)
	}
}
