package target_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/target"
)

// fleetOf is a fleet of a few nodes: a and b are stored, c is connected only, and old was revoked. The group is "web", with a.
type fleetOf struct{}

const group classify.ID = "11111111-1111-4111-8111-111111111111"

func (fleetOf) Groups(context.Context) ([]classify.Group, int64, error) {
	return []classify.Group{{ID: classify.RootID, Name: "All Nodes"}, {ID: group, Parent: classify.RootID, Name: "web"}}, 1, nil
}

func (f fleetOf) Current(ctx context.Context) (*classify.Tree, error) {
	groups, _, _ := f.Groups(ctx)
	return classify.NewTree(groups), nil
}

func (fleetOf) Members(_ context.Context, _ classify.ID, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	members := map[fleet.Certname]bool{}
	for _, node := range nodes {
		if node == "a" {
			members[node] = false
		}
	}
	return members, nil
}

func (fleetOf) Nodes(_ context.Context, page inventory.Page) (nodes []inventory.Node, err error) {
	for _, name := range []string{"a", "b", "old"} {
		if name > page.After {
			nodes = append(nodes, inventory.Node{Certname: fleet.Certname(name)})
		}
	}
	return nodes, nil
}

func (fleetOf) Standings(context.Context, fleet.Environment) ([]compile.Standing, error) {
	return []compile.Standing{{Node: "b"}, {Node: "a"}}, nil
}

// Ask answers every question with all stored nodes.
func (fleetOf) Ask(_ context.Context, _ inventory.Question, row func(json.RawMessage) error) error {
	for _, name := range []string{"a", "b", "old"} {
		if err := row(json.RawMessage(`{"certname":"` + name + `"}`)); err != nil {
			return err
		}
	}
	return nil
}

func (fleetOf) Revoked(context.Context) ([]pki.Certificate, error) {
	return []pki.Certificate{{Certname: "old"}, {Certname: "a"}, {Certname: "a"}}, nil
}

// Certificate says that a has a new one, and old has none but the revoked one.
func (fleetOf) Certificate(_ context.Context, name fleet.Certname) (pki.Certificate, error) {
	if name == "old" {
		return pki.Certificate{Certname: name, RevokedAt: time.Unix(1, 0)}, nil
	}
	return pki.Certificate{Certname: name}, nil
}

type apps struct{}

func (apps) Nodes(context.Context, string) ([]fleet.Certname, error) {
	return []fleet.Certname{"b", "c"}, nil
}

func newResolver() target.Resolver {
	return target.Resolver{
		Stored:       fleetOf{},
		Standings:    fleetOf{},
		Groups:       target.Groups{Classifier: fleetOf{}, Nodes: fleetOf{}},
		Inventory:    fleetOf{},
		Applications: apps{},
		Certificates: fleetOf{},
		Connected:    func() []fleet.Certname { return []fleet.Certname{"c"} },
	}
}

func TestWhoIsMeant(t *testing.T) {
	t.Parallel()
	r := newResolver()
	for what, c := range map[string]struct {
		targets job.Targets
		want    string
	}{
		"named":               {job.Targets{Nodes: []fleet.Certname{"z", "a", "z"}}, "[a z]"},
		"a group by its name": {job.Targets{Group: "web"}, "[a]"},
		"an application":      {job.Targets{App: "shop"}, "[b c]"},
		"a condition":         {job.Targets{Query: `certname ~ "."`}, "[a b old]"},
		"all, not the gone":   {job.Targets{All: true}, "[a b c]"},
		"all but one":         {job.Targets{All: true, Exclude: []fleet.Certname{"b"}}, "[a c]"},
		"several ways":        {job.Targets{Nodes: []fleet.Certname{"x"}, Group: string(group)}, "[a x]"},
		"nobody":              {job.Targets{}, "[]"},
	} {
		if got, err := r.Resolve(t.Context(), c.targets); err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v; want %s", what, got, err, c.want)
		}
	}
	if _, err := r.Members(t.Context(), "nothing"); !fault.Is(err, fault.NotFound) {
		t.Errorf("members of a group that is not there: %v", err)
	}
}

// Without a filter each node holds, and a limit is one more reason not to.
func TestWhomALimitTakes(t *testing.T) {
	t.Parallel()
	r := newResolver()
	for _, c := range []struct {
		targets job.Targets
		want    string
	}{
		{job.Targets{All: true}, "a:yes b:yes c:yes"},
		{job.Targets{All: true, Limit: "2"}, "a:yes b:yes c:no (limit 2: other nodes are taken, 2 of 3)"},
		{job.Targets{All: true, Filter: &filter.Filter{Names: []string{"/[bc]/"}}, Limit: "1"}, "a:no b:yes c:no (limit 1: other nodes are taken, 1 of 2)"},
	} {
		judged, err := r.Judged(t.Context(), c.targets)
		var got []string
		for _, j := range judged {
			text := fmt.Sprintf("%s:%s", j.Node, j.Holds)
			if i := slices.IndexFunc(j.Parts, func(p filter.Part) bool { return p.Flag == "limit" }); i >= 0 {
				text += fmt.Sprintf(" (%s: %s)", j.Parts[i].Text, j.Parts[i].Why)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); err != nil || text != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.targets, text, err, c.want)
		}
		if meant, err := r.Resolve(t.Context(), c.targets); err != nil || len(meant) != strings.Count(c.want, ":yes") {
			t.Errorf("%+v: %v are meant, %v", c.targets, meant, err)
		}
	}
	if _, err := r.Judged(t.Context(), job.Targets{All: true, Limit: "some"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a limit that is none: %v", err)
	}
}

// A preview without targets is of all active nodes of its environment.
func TestWhereNobodyIsNamed(t *testing.T) {
	t.Parallel()
	r := newResolver()
	for want, targets := range map[string]api.JobTargets{
		"[a b]": {},
		"[b]":   {Exclude: []string{"a"}},
		"[q]":   {Nodes: []string{"q"}},
	} {
		if got, err := r.NamedOrOf(t.Context(), "production", targets); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%+v: %v, %v; want %s", targets, got, err, want)
		}
	}
}

func TestMembersOfGroups(t *testing.T) {
	t.Parallel()
	g := newResolver().Groups
	all, err := g.Members(t.Context(), string(classify.RootID))
	if err != nil || fmt.Sprint(all) != "[a b old]" {
		t.Errorf("everybody is %v, %v", all, err)
	}
	found, err := g.Memberships(t.Context(), []fleet.Certname{"a", "b"}, []string{string(classify.RootID), "gone"})
	if err != nil || len(found["a"]) != 1 || len(found["b"]) != 1 {
		t.Errorf("memberships %+v, %v", found, err)
	}
}
