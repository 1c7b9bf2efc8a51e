package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/action/invoke"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// shop is five nodes: new has the newest lamp, old one whose status switches the lamp on, older one without status, bare none, mine is denied.
type shop struct {
	t     *testing.T
	asked *call.Question
	kept  *[]history.Call
}

func (s shop) Keep(_ context.Context, c history.Call) { *s.kept = append(*s.kept, c) }

func (s shop) service() invoke.Service {
	minute := 0
	return invoke.Service{Catalogue: s, Resolver: s, Gate: s, Asker: s, Recorder: s, Now: func() time.Time {
		minute++
		return at(minute)
	}}
}

func at(minute int) time.Time { return time.Date(2026, 11, 26, 10, minute, 0, 0, time.UTC) }

func lamp(version string, actions ...action.Action) action.Module {
	return action.Module{Name: "lamp", Version: version, Actions: actions}
}

func one(name string, reads bool) action.Action {
	return action.Action{
		Name: name, ReadOnly: reads, Timeout: 7,
		Input:   jsontext.Value(`{"type":"object","additionalProperties":false,"required":["n"],"properties":{"n":{"type":"integer"},"key":{"writeOnly":true}}}`),
		Results: jsontext.Value(`{}`),
	}
}

var lamps = map[fleet.Digest]action.Module{
	"new": lamp("3", one("on", false), one("status", true)), "old": lamp("2", one("on", false), one("status", false)), "older": lamp("1", one("on", false)),
}

func (shop) Latest(_ context.Context, module, _ string) (action.Module, error) {
	if module != "lamp" {
		return action.Module{}, fault.New(fault.NotFound, "no node has told of a module %s", module)
	}
	return lamps["new"], nil
}

func (shop) Has(node fleet.Certname, _ string) (fleet.Digest, error) {
	if node == "mine" {
		return "new", nil
	}
	if _, there := lamps[fleet.Digest(node)]; !there {
		return "", fault.New(fault.NotFound, "it does not have the module lamp")
	}
	return fleet.Digest(node), nil
}

func (shop) Described(_ context.Context, _ string, digest fleet.Digest) (action.Module, error) {
	return lamps[digest], nil
}

func (shop) Resolve(_ context.Context, t job.Targets) ([]fleet.Certname, error) {
	return slices.Sorted(slices.Values(t.Nodes)), nil
}

func (s shop) RefusedTo(_ context.Context, _ fleet.Actor, p fleet.Permission, spec job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	if p != fleet.ActionAsk || spec.Action.Module != "lamp" || spec.Action.Action != "status" {
		s.t.Errorf("asked for %s of %+v", p, spec.Action)
	}
	refused := map[fleet.Certname]string{}
	if slices.Contains(nodes, "mine") {
		refused["mine"] = "it is not yours"
	}
	return refused, nil
}

func (s shop) Ask(_ context.Context, q call.Question, tell func([]action.Answer)) {
	*s.asked = q
	for _, node := range q.Nodes {
		tell([]action.Answer{{Node: node}})
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	var asked call.Question
	var kept []history.Call
	service := shop{t, &asked, &kept}.service()
	ctx := fleet.WithActor(t.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "ana"})
	all := job.Targets{Nodes: []fleet.Certname{"new", "old", "older", "bare", "mine"}}
	request := invoke.Request{
		Module: "lamp", Action: "status", Texts: map[string]string{"n": "4", "key": "correct horse"}, Targets: all, SkipDenied: true, Batch: 3, Sleep: time.Second,
	}
	c, err := service.Prepare(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	told := map[fleet.Certname]string{}
	service.Ask(ctx, c, func(answers []action.Answer) {
		for _, a := range answers {
			if told[a.Node] != "" {
				t.Errorf("%s is told twice", a.Node)
			}
			told[a.Node] = fmt.Sprint(a.Code, ": ", a.Message)
		}
	})
	want := map[fleet.Certname]string{
		"new": "ok: ", "bare": "unknown action: it does not have the module lamp", "mine": "denied: it is not yours",
		"old":   "denied: in version 2 of its module the action changes something: order it as a job",
		"older": "unknown action: version 1 of its module lamp has no action status",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	question := call.Question{
		Module: "lamp", Action: "status", Input: jsontext.Value(`{"key":"correct horse","n":4}`), Caller: "tutti=ana", Nodes: []fleet.Certname{"new"},
		Timeout: 12 * time.Second, Batch: 3, Sleep: time.Second,
	}
	if diff := cmp.Diff(question, asked); diff != "" {
		t.Error(diff)
	}
	record := history.Call{
		Actor: "ana", ActorKind: fleet.UserActor, Module: "lamp", Action: "status", Input: `{"key":"(hidden)","n":4}`, Targets: "new, old, older, bare, mine",
		Nodes: 5, Counts: map[action.Code]int{action.Done: 1, action.UnknownAction: 2, action.Denied: 2}, Began: at(1), Ended: at(2),
	}
	if diff := cmp.Diff([]history.Call{record}, kept); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	left, leave := context.WithCancel(ctx)
	leave()
	service.Ask(left, c, func([]action.Answer) {})
	if len(kept) != 2 || !kept[1].Left || kept[1].Nodes != 5 {
		t.Errorf("of somebody who left: %+v", kept)
	}
}

func TestWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	var asked call.Question
	service := shop{t: t, asked: &asked}.service()
	good := invoke.Request{Module: "lamp", Action: "status", Texts: map[string]string{"n": "4"}, Targets: job.Targets{Nodes: []fleet.Certname{"new", "mine"}}}
	for want, change := range map[string]func(*invoke.Request){
		"no node has told of a module fan":                       func(r *invoke.Request) { r.Module = "fan" },
		"the module lamp has no action statsu":                   func(r *invoke.Request) { r.Action = "statsu" },
		"lamp on changes nodes, so it is a job: order it as one": func(r *invoke.Request) { r.Action = "on" },
		"input of lamp status: field n: it is missing":           func(r *invoke.Request) { r.Texts = nil },
		"input of lamp status: field n: it must be an integer": func(r *invoke.Request) {
			r.Texts = map[string]string{"n": "x"}
		},
		"field timeout: it is between 0 and 1h":                                                         func(r *invoke.Request) { r.Timeout = 2 * time.Hour },
		"field batch: it is a number of nodes; 0 asks all at once":                                      func(r *invoke.Request) { r.Batch = -1 },
		"field batch_sleep: it is between 0 and 1h":                                                     func(r *invoke.Request) { r.Sleep = -1 },
		"it is not yours. It is denied for 1 of 2 nodes. Nobody was asked; skip_denied leaves them out": func(*invoke.Request) {},
	} {
		r := good
		change(&r)
		_, err := service.Prepare(t.Context(), r)
		if fault.Detail(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	order, err := service.Order(t.Context(), invoke.Request{Module: "lamp", Action: "on", Values: map[string]json.RawMessage{"n": json.RawMessage("1")}})
	if err != nil || order.Module != "lamp" || order.Action != "on" || string(order.Input) != `{"n":1}` {
		t.Errorf("%+v, %v", order, err)
	}
	if _, err := service.Order(t.Context(), invoke.Request{Module: "lamp", Action: "on"}); !strings.Contains(fault.Detail(err), "field n: it is missing") {
		t.Error(err)
	}
	if asked.Module != "" {
		t.Errorf("asked %+v", asked)
	}
}
