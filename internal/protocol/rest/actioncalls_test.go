package rest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/action/invoke"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

// nodeGate allows by grants that know web nodes.
type nodeGate struct{}

func (nodeGate) RefusedTo(_ context.Context, actor fleet.Actor, p fleet.Permission, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	refused := map[fleet.Certname]string{}
	for _, node := range nodes {
		object := fleet.Object{Node: node, Action: s.Action.Module + "." + s.Action.Action}
		if strings.HasPrefix(string(node), "web") {
			object.Inside = []string{webCondition}
		}
		if err := rbac.Allow(actor, p, object); err != nil {
			refused[node] = fault.Detail(err)
		}
	}
	return refused, nil
}

func someInvoker(t *testing.T) invoke.Service {
	t.Helper()
	return invoke.Service{Catalogue: toldModules(t), Resolver: asNamed{}, Gate: nodeGate{}, Asker: present{}}
}

// halves judges: web nodes fit.
type halves struct{}

func (halves) Judged(_ context.Context, t job.Targets) (judged []target.Judged, err error) {
	for _, node := range t.Nodes {
		holds := filter.No
		if strings.HasPrefix(string(node), "web") {
			holds = filter.Yes
		}
		judged = append(judged, target.Judged{Node: node, Judgement: filter.Judgement{Holds: holds, Parts: []filter.Part{{Text: "role=web", Holds: holds, Why: "so it is"}}}})
	}
	return judged, nil
}

func TestAskedAnswersAreAStream(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	asked := func(body string) string {
		t.Helper()
		w := b.call(admin, "POST", api.Prefix+"/actions/lamp/status/ask", []byte(body))
		var lines []string
		for line := range strings.Lines(w.Body.String()) {
			data, is := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			var e api.ActionEvent
			if !is || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			if e.Asked != nil {
				lines = append(lines, "asked "+string(rune('0'+e.Asked.Nodes)))
			}
			if e.Answer != nil {
				lines = append(lines, e.Answer.Node+" "+e.Answer.State+" "+e.Answer.Message)
			}
		}
		if !strings.HasSuffix(w.Body.String(), "event: end\ndata: {}\n\n") {
			lines = append(lines, w.Body.String())
		}
		return strings.Join(lines, "\n")
	}
	want := "asked 2\nn-1 unknown action its agent does not tell which modules it has\nweb-1 ok "
	if got := asked(`{"targets":{"nodes":["web-1","n-1"]}}`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.gets(t, "POST", "/actions/lamp/on/ask", `{"texts":{"name":"x"},"targets":{"nodes":["web-1"]}}`, 400, "lamp on changes nodes, so it is a job")
	b.gets(t, "POST", "/actions/lamp/statsu/ask", `{"targets":{"nodes":["web-1"]}}`, 404, "the module lamp has no action statsu")
	b.gets(t, "POST", "/actions/lamb/status/ask", `{"targets":{"nodes":["web-1"]}}`, 404, "no node has told of a module")
	b.gets(t, "POST", "/actions/lamp/status/ask", `{}`, 404, "no node is meant")
	b.gets(t, "POST", "/actions/lamp/status/ask", `{"batch":-1,"targets":{"nodes":["web-1"]}}`, 400, "field batch")
	b.gets(t, "POST", "/jobs/action", `{"module":"lamp","action":"on","targets":{"nodes":["web-1"]}}`, 400, "field name: it is missing")
	var list api.List[api.NodeMatched]
	b.do(t, "POST", "/match", `{"targets":{"nodes":["web-1","n-1"],"filter":{"facts":["role=web"]}}}`, &list)
	if len(list.Items) != 2 || list.Items[0].Holds != "yes" || list.Items[1].Holds != "no" || list.Items[0].Parts[0].Part != "role=web" {
		t.Errorf("%+v", list.Items)
	}
}
