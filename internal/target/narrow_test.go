package target_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/target"
)

// small is three nodes: what the inventory knows of them, and what only they know.
type small struct{ asked *[]string }

func (s small) Ask(_ context.Context, q inventory.Question, row func(json.RawMessage) error) error {
	rows := map[string][]string{
		"facts": {
			`{"certname":"a","name":"os","value":{"family":"Debian","release":{"major":"12"}}}`,
			`{"certname":"b","name":"os","value":{"family":"RedHat","release":{"major":"9"}}}`,
		},
		"resources": {`{"certname":"a","title":"Role::Web"}`, `{"certname":"a","title":"Main"}`, `{"certname":"b","title":"Role::Db"}`},
	}[q.Query.Query().Entity]
	for _, text := range rows {
		if err := row(json.RawMessage(text)); err != nil {
			return err
		}
	}
	return nil
}

func (small) Installed(context.Context, []fleet.Certname) (map[fleet.Certname]map[string]string, error) {
	return map[fleet.Certname]map[string]string{"a": {"service": "1.0.0"}, "c": {"service": "1.0.0", "disk": "2.1.0"}}, nil
}

// asker answers data functions: on a, ntp is stopped; b cannot; c is silent.
type asker struct{ small }

func (s asker) Ask(_ context.Context, q call.Question, tell func([]action.Answer)) {
	*s.asked = append(*s.asked, fmt.Sprintf("%s %s %s by %s of %v", q.Module, q.Action, q.Input, q.Caller, q.Nodes))
	for _, node := range q.Nodes {
		switch node {
		case "a":
			tell([]action.Answer{{Node: node, Data: jsontext.Value(`{"status":"stopped"}`)}})
		case "b":
			tell([]action.Answer{{Node: node, Code: action.Aborted, Message: "no systemd"}})
		default:
			tell([]action.Answer{{Node: node, Code: action.Silent, Message: "no answer in time"}})
		}
	}
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	all := []fleet.Certname{"a", "b", "c"}
	for _, c := range []struct {
		filter filter.Filter
		want   string // node: truth
		asked  string // of whom
	}{
		{filter.Filter{Facts: []string{"os.family=Debian"}}, "a:yes b:no c:no", ""},
		{filter.Filter{Facts: []string{"os.release.major>9"}}, "a:yes b:no c:no", ""},
		{filter.Filter{Classes: []string{"/^role::/"}}, "a:yes b:yes c:no", ""},
		{filter.Filter{Modules: []string{"disk"}}, "a:no b:no c:yes", ""},
		{filter.Filter{Names: []string{"/[ab]/"}, Facts: []string{"os.family=RedHat"}}, "a:no b:yes c:no", ""},
		{filter.Filter{Select: `fact("os.family") == "Debian" and service("ntp").status == "stopped"`}, "a:yes b:no c:no", "[a]"},
		{filter.Filter{Select: `service("ntp").status == "stopped"`}, "a:yes b:no c:no", "[a b c]"},
		{filter.Filter{Select: `service("ntp").status == "running" or module("disk")`}, "a:no b:no c:yes", "[a b]"},
	} {
		var asked []string
		inventory := small{&asked}
		n := target.Narrower{Inventory: inventory, Modules: inventory, Asker: asker{inventory}}
		ctx := fleet.WithActor(t.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "ana", Grants: []fleet.Grant{{Permission: fleet.Everything}}})
		judged, err := n.Judge(ctx, c.filter, all)
		if err != nil {
			t.Errorf("%+v: %v", c.filter, err)
		}
		var got []string
		for _, j := range judged {
			got = append(got, fmt.Sprintf("%s:%s", j.Node, j.Holds))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v: %s", c.filter, diff)
		}
		if c.asked == "" && len(asked) > 0 ||
			c.asked != "" && (len(asked) != 1 || asked[0] != `rpcutil get_data {"source":"service","query":"ntp"} by tutti=ana of `+c.asked) {
			t.Errorf("%+v: asked %v", c.filter, asked)
		}
	}
}

// Whoever may not ask nodes learns nothing from them by a filter.
func TestNarrowAsksOnlyWhomOneMayAsk(t *testing.T) {
	t.Parallel()
	var asked []string
	inventory := small{&asked}
	n := target.Narrower{Inventory: inventory, Modules: inventory, Asker: asker{inventory}}
	ctx := fleet.WithActor(t.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "ana", Grants: []fleet.Grant{{Permission: fleet.PuppetRun}}})
	judged, err := n.Judge(ctx, filter.Filter{Select: `file("/etc/shadow").md5 == "x"`}, []fleet.Certname{"a"})
	if err != nil || len(judged) != 1 || judged[0].Holds != filter.No || !strings.Contains(judged[0].Parts[0].Why, "action:ask") {
		t.Errorf("%+v, %v", judged, err)
	}
	for _, question := range asked {
		if !strings.HasSuffix(question, "of []") {
			t.Errorf("asked %v", asked)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	var nodes []fleet.Certname
	for i := range 200 {
		nodes = append(nodes, fleet.Certname(fmt.Sprintf("n%03d", i)))
	}
	seed, other := int64(1), int64(2)
	for _, c := range []struct {
		limit string
		seed  *int64
		want  int
	}{{"", nil, 200}, {"10", nil, 10}, {"500", nil, 200}, {"10%", nil, 20}, {"1%", nil, 2}, {"100%", nil, 200}, {"10", &seed, 10}, {"1", &seed, 1}} {
		got, err := target.Limit(nodes, c.limit, c.seed)
		again, _ := target.Limit(nodes, c.limit, c.seed)
		if err != nil || len(got) != c.want || !slices.Equal(got, again) || !slices.IsSorted(got) {
			t.Errorf("%q: %d nodes, %v", c.limit, len(got), err)
		}
	}
	if one, _ := target.Limit(nodes[:3], "1%", nil); len(one) != 1 {
		t.Errorf("a share is never less than one node, got %d", len(one))
	}
	a, _ := target.Limit(nodes, "10", &seed)
	b, _ := target.Limit(nodes, "10", &other)
	if slices.Equal(a, b) || slices.Equal(a, nodes[:10]) {
		t.Error("seeds draw the same nodes")
	}
	for _, wrong := range []string{"0", "-1", "0%", "101%", "x", "1.5"} {
		if _, err := target.Limit(nodes, wrong, nil); fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
