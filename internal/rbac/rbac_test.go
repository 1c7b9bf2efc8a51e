package rbac_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// words are few, so that they meet.
func word(t *rapid.T, label string, words ...string) string {
	return rapid.SampledFrom(words).Draw(t, label)
}

func drawPatterns(t *rapid.T, label string) []string {
	return rapid.SliceOfN(rapid.StringMatching(`[ab*]{1,4}`), 0, 2).Draw(t, label)
}

func drawGrants(t *rapid.T, label string) []fleet.Grant {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fleet.Grant {
		return fleet.Grant{
			Permission:   fleet.Permission(word(t, "permission", "*", "node:read", "code:deploy")),
			Environments: drawPatterns(t, "environments"), Tasks: drawPatterns(t, "tasks"), Nodes: word(t, "nodes", "", "c1", "c2"),
		}
	}), 0, 3).Draw(t, label)
}

func drawActor(t *rapid.T) fleet.Actor {
	kind := rapid.SampledFrom([]fleet.ActorKind{fleet.Anonymous, fleet.NodeActor, fleet.UserActor}).Draw(t, "kind")
	return fleet.Actor{
		Kind: kind, Name: "ann", Grants: drawGrants(t, "grants"),
		Narrowed: rapid.Bool().Draw(t, "narrowed"), Within: drawGrants(t, "within"),
	}
}

func drawObject(t *rapid.T) fleet.Object {
	return fleet.Object{
		Node:        fleet.Certname(word(t, "node", "", "web-1")),
		Environment: fleet.Environment(rapid.StringMatching(`[ab]{0,3}`).Draw(t, "environment")),
		Task:        rapid.StringMatching(`[ab]{0,3}`).Draw(t, "task"),
		Inside:      rapid.SliceOfN(rapid.SampledFrom([]string{"c1", "c2"}), 0, 2).Draw(t, "inside"),
	}
}

// naive says the same as Allow in the plainest words: everything by itself, patterns
// as regular expressions.
func naive(actor fleet.Actor, permission fleet.Permission, object fleet.Object) bool {
	if actor.Kind == fleet.Anonymous {
		return false
	}
	lists := [][]fleet.Grant{actor.Grants}
	if actor.Narrowed {
		lists = append(lists, actor.Within)
	}
	for _, grants := range lists {
		one := false
		for _, g := range grants {
			permitted := g.Permission == "*" || g.Permission == permission
			environment := len(g.Environments) == 0 || object.Environment != "" && anyMatches(g.Environments, string(object.Environment))
			task := len(g.Tasks) == 0 || object.Task != "" && anyMatches(g.Tasks, object.Task)
			node := g.Nodes == "" || object.Node != "" && slices.Contains(object.Inside, g.Nodes)
			if permitted && environment && task && node {
				one = true
			}
		}
		if !one {
			return false
		}
	}
	return true
}

func anyMatches(patterns []string, name string) bool {
	for _, p := range patterns {
		if regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*") + "$").MatchString(name) {
			return true
		}
	}
	return false
}

func TestAllowIsWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		actor, object := drawActor(t), drawObject(t)
		permission := fleet.Permission(word(t, "asked", "node:read", "code:deploy"))
		err := rbac.Allow(actor, permission, object)
		if want := naive(actor, permission, object); (err == nil) != want {
			t.Fatalf("got %v, want allowed %v", err, want)
		}
		if err != nil && fault.Of(err) != fault.Denied {
			t.Fatalf("a refusal of kind %s", fault.Of(err))
		}
		if err == nil && rbac.AllowSome(actor, permission) != nil {
			t.Fatal("this object is allowed, but AllowSome says that none is")
		}
		if rbac.Allow(actor, permission, fleet.Object{}) == nil && err != nil {
			t.Fatal("the whole is allowed, but not this object of it")
		}
	})
}

// What one may give away, one may do.
func TestNobodyGivesWhatTheyDoNotHave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		giver, given, object := drawActor(t), drawGrants(t, "given"), drawObject(t)
		if giver.Kind == fleet.Anonymous {
			giver.Kind = fleet.UserActor
		}
		if rbac.Covers(giver, given) != nil {
			return
		}
		taker := fleet.Actor{Kind: fleet.UserActor, Name: "bob", Grants: given}
		for _, permission := range []fleet.Permission{fleet.NodeRead, fleet.CodeDeploy, fleet.UserWrite} {
			if rbac.Allow(taker, permission, object) == nil && rbac.Allow(giver, permission, object) != nil {
				t.Fatalf("bob may %s, ann who gave it may not", permission)
			}
		}
	})
}

func TestNodesActForThemselves(t *testing.T) {
	t.Parallel()
	node := fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"}
	for name, c := range map[string]struct {
		actor fleet.Actor
		want  string
	}{
		"itself":          {node, ""},
		"another":         {fleet.Actor{Kind: fleet.NodeActor, Name: "db-1"}, "node db-1 may not act for node web-1"},
		"a user so named": {fleet.Actor{Kind: fleet.UserActor, Name: "web-1"}, "user web-1 may not act for node web-1"},
		"nobody":          {fleet.Actor{}, "node web-1 must show its certificate"},
		"by right":        {fleet.Actor{Kind: fleet.UserActor, Name: "ann", Grants: []fleet.Grant{{Permission: fleet.NodeAct}}}, ""},
	} {
		err := rbac.AllowSelf(c.actor, "web-1")
		if got := fault.Detail(err); got != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestScopesThatMatter(t *testing.T) {
	t.Parallel()
	actor := fleet.Actor{Kind: fleet.UserActor, Narrowed: true, Grants: []fleet.Grant{
		{Permission: fleet.NodeRead, Nodes: "c1"}, {Permission: fleet.NodePurge, Nodes: "c2"}, {Permission: fleet.Everything, Nodes: "c1"},
	}, Within: []fleet.Grant{{Permission: fleet.NodeRead, Nodes: "c3"}}}
	if got := rbac.NodeScopes(actor, fleet.NodeRead); !slices.Equal(got, []string{"c1", "c3"}) {
		t.Errorf("got %v", got)
	}
	if !rbac.Scoped(actor, fleet.NodeRead) || rbac.Scoped(actor, fleet.CodeRead) {
		t.Error("scoped: node:read, and not code:read, of which a token without it has nothing")
	}
}

func TestBuiltInRolesAreSound(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, r := range rbac.BuiltIn() {
		if names[r.Name] || r.Description == "" || len(r.Grants) == 0 {
			t.Errorf("role %+v", r)
		}
		names[r.Name] = true
		for _, g := range r.Grants {
			if !fleet.IsPermission(g.Permission) || g.Scoped() {
				t.Errorf("role %s gives %+v", r.Name, g)
			}
		}
	}
}
