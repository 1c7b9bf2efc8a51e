package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/action/catalogue/cataloguetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func module(name, version string) action.Module {
	schema := jsontext.Value(`{"type":"object"}`)
	return action.Module{
		Name: name, Description: "What " + name + " " + version + " does", Version: version, Provider: action.External,
		Actions: []action.Action{{Name: "do", Input: schema, Results: schema}},
	}
}

// fleetOf is nodes that answer as agents do, in a bubble of its own time.
type fleetOf struct {
	t        *testing.T
	store    *cataloguetest.Store
	saved    func()
	service  *catalogue.Service
	follower *catalogue.Follower
	stop     context.CancelFunc
	ended    chan struct{}

	mu      sync.Mutex
	modules map[fleet.Certname][]action.Module
	away    map[fleet.Certname]bool
	answer  map[fleet.Certname]func(pxp.Request, jsontext.Value) jsontext.Value // of nodes that change their answers
	asked   []string                                                            // what, without the transaction
	ids     int
}

func newFleet(t *testing.T) *fleetOf {
	t.Helper()
	return newFleetOn(t, cataloguetest.NewStore(), nil)
}

// newFleetOn is the nodes that are connected to one of several servers; saved is told when it has saved something.
func newFleetOn(t *testing.T, store *cataloguetest.Store, saved func()) *fleetOf {
	t.Helper()
	f := &fleetOf{
		t: t, store: store, saved: saved, modules: map[fleet.Certname][]action.Module{}, away: map[fleet.Certname]bool{},
		answer: map[fleet.Certname]func(pxp.Request, jsontext.Value) jsontext.Value{},
	}
	f.start(catalogue.DefaultLimits())
	t.Cleanup(func() { f.kill() })
	return f
}

// start opens the service on what is stored.
func (f *fleetOf) start(l catalogue.Limits) {
	f.t.Helper()
	service, err := catalogue.Open(f.t.Context(), catalogue.Parts{
		Store: f.store, Ask: f.ask, Now: time.Now, Log: slog.New(slog.DiscardHandler), Saved: f.saved,
		Connected: func(node fleet.Certname) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.modules[node] != nil && !f.away[node]
		},
		NewID: func() string { f.mu.Lock(); defer f.mu.Unlock(); f.ids++; return fmt.Sprint(f.ids) },
	}, l)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	f.service, f.stop, f.ended = service, stop, make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { _ = service.Run(ctx) })
	if f.follower = catalogue.NewFollower(service); f.saved != nil {
		running.Go(func() { _ = f.follower.Run(ctx) })
	}
	go func(ended chan struct{}) {
		running.Wait()
		close(ended)
	}(f.ended)
}

// kill ends the service as kill -9 does: what is not written is lost.
func (f *fleetOf) kill() {
	f.store.Fail(errors.New("killed"))
	f.stop()
	<-f.ended
	f.store.Fail(nil)
}

func (f *fleetOf) setOf(node fleet.Certname) action.Set {
	var found []action.Listed
	for _, m := range f.modules[node] {
		found = append(found, action.ListedOf(m))
	}
	return action.NewSet(found)
}

// connect is a node with these modules that connects.
func (f *fleetOf) connect(node fleet.Certname, modules ...action.Module) {
	f.t.Helper()
	f.mu.Lock()
	f.modules[node], f.away[node] = modules, false
	digest := f.setOf(node).Digest()
	f.mu.Unlock()
	if err := f.service.Told(node, pxp.AgentTold{Modules: string(digest), Version: "1.0", OS: "linux", Arch: "amd64"}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleetOf) ask(ctx context.Context, node fleet.Certname, r pxp.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away[node] {
		return fault.New(fault.NotFound, "not connected")
	}
	f.asked = append(f.asked, r.Action+" "+string(r.Params)+" of "+string(node))
	answer := f.truth(node, r)
	if change := f.answer[node]; change != nil {
		answer = change(r, answer)
	}
	if answer == nil {
		return nil
	}
	service := f.service
	go service.Answered(ctx, node, r.Transaction, answer)
	return nil
}

func (f *fleetOf) truth(node fleet.Certname, r pxp.Request) jsontext.Value {
	if r.Action == pxp.List {
		return pxp.Data(pxp.ListResults{Modules: pxp.Data(f.setOf(node))})
	}
	p, err := pxp.ParseDescribe(r.Params)
	if err != nil {
		f.t.Error(err)
	}
	for _, m := range f.modules[node] {
		if m.Name == p.Name {
			return pxp.Data(pxp.DescribeResults{Metadata: m.Text()})
		}
	}
	return jsontext.Value("null")
}

// questions is what was asked since the last call, without of whom, sorted.
func (f *fleetOf) questions(after time.Duration) []string {
	<-time.After(after) // of the bubble
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	var what []string
	for _, q := range f.asked {
		text, _, _ := strings.Cut(q, " of ")
		what = append(what, text)
	}
	f.asked = nil
	slices.Sort(what)
	return what
}

// newest is the newest metadata of a module.
func (f *fleetOf) newest(name string) (action.Module, error) {
	m, err := f.service.Module(name, everybody)
	if err != nil {
		return action.Module{}, err
	}
	return f.service.Newest(f.t.Context(), m)
}

func everybody(fleet.Certname) bool { return true }

// 200 nodes with three sets of modules: three lists are asked for, and each module's metadata once. Nothing when they connect again.
func TestEachThingIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		old, lamp, fan := module("lamp", "1.9"), module("lamp", "1.10"), module("fan", "2")
		kinds := [][]action.Module{{old}, {lamp, fan}, {lamp}}
		all := func() {
			for i := range 200 {
				f.connect(fleet.Certname(fmt.Sprintf("node-%d", i)), kinds[i%3]...)
			}
		}
		all()
		want := []string{`describe {"name":"fan"}`, `describe {"name":"lamp"}`, `describe {"name":"lamp"}`, "list {}", "list {}", "list {}"}
		if diff := cmp.Diff(want, f.questions(5*time.Second)); diff != "" {
			t.Errorf("questions (-want +got):\n%s", diff)
		}
		if saves := len(f.store.Saved()); saves == 0 || saves > 3 {
			t.Errorf("%d writes for 200 nodes that connect at once", saves)
		}
		all()
		if again := f.questions(time.Minute); len(again) > 0 || len(f.store.Saved()) > 0 {
			t.Errorf("they connect again: %v is asked, or something is written", again)
		}
		got := f.service.Modules(everybody)
		wantModules := []catalogue.Module{
			{Name: "fan", Description: "What fan 2 does", Versions: []catalogue.Version{
				{Version: "2", Digest: fan.Digest(), Provider: action.External, Nodes: 67, Known: true},
			}},
			{Name: "lamp", Description: "What lamp 1.10 does", Versions: []catalogue.Version{
				{Version: "1.10", Digest: lamp.Digest(), Provider: action.External, Nodes: 133, Known: true},
				{Version: "1.9", Digest: old.Digest(), Provider: action.External, Nodes: 67, Known: true},
			}},
		}
		if diff := cmp.Diff(wantModules, got); diff != "" {
			t.Errorf("modules (-want +got):\n%s", diff)
		}
		few := f.service.Modules(func(node fleet.Certname) bool { return node == "node-0" || node == "node-3" })
		if len(few) != 1 || few[0].Nodes() != 2 || few[0].Description != "What lamp 1.9 does" {
			t.Errorf("who may see two nodes sees %+v", few)
		}
		if metadata, err := f.newest("lamp"); err != nil || metadata.Version != "1.10" {
			t.Errorf("%+v, %v", metadata, err)
		}
		if _, err := f.newest("none"); fault.Of(err) != fault.NotFound {
			t.Error(err)
		}
		if having := f.service.Having("fan"); len(having) != 67 || having[0] != "node-1" {
			t.Errorf("%d nodes have a fan: %v", len(having), having)
		}
		f.kill()
		f.start(catalogue.DefaultLimits())
		all()
		if again := f.questions(time.Minute); len(again) > 0 || len(f.store.Saved()) > 0 {
			t.Errorf("after a kill: %v is asked, or something is written", again)
		}
		if diff := cmp.Diff(wantModules, f.service.Modules(everybody)); diff != "" {
			t.Errorf("modules after a kill (-want +got):\n%s", diff)
		}
	})
}

// A node that answers with something else than it told is not believed, and another one is asked. Lies cost no more than that.
func TestNodesThatLie(t *testing.T) {
	t.Parallel()
	other := module("lamp", "6.66")
	for name, lie := range map[string]func(pxp.Request, jsontext.Value) jsontext.Value{
		"another list": func(pxp.Request, jsontext.Value) jsontext.Value {
			return pxp.Data(pxp.ListResults{Modules: jsontext.Value("[]")})
		},
		"no list":    func(pxp.Request, jsontext.Value) jsontext.Value { return jsontext.Value(`{"modules":{}}`) },
		"no results": func(pxp.Request, jsontext.Value) jsontext.Value { return jsontext.Value(`null`) },
		"no answer":  func(pxp.Request, jsontext.Value) jsontext.Value { return nil },
		"a flood":    func(pxp.Request, jsontext.Value) jsontext.Value { return pxp.Data(strings.Repeat("x", 2<<20)) },
		"other modules": func(r pxp.Request, truth jsontext.Value) jsontext.Value {
			if r.Action == pxp.List {
				return truth
			}
			return pxp.Data(pxp.DescribeResults{Metadata: other.Text()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				lamp := module("lamp", "1")
				f.answer["liar"] = lie
				f.connect("liar", lamp)
				if asked := f.questions(30 * time.Minute); len(asked) < 2 || len(asked) > 60 {
					t.Errorf("a node that lies is asked %d times in half an hour", len(asked))
				}
				if _, err := f.newest("lamp"); err == nil {
					t.Fatal("its metadata are believed")
				}
				f.connect("honest", lamp)
				f.questions(longestPause)
				if metadata, err := f.newest("lamp"); err != nil || metadata.Version != "1" {
					t.Errorf("what another node says: %+v, %v", metadata, err)
				}
			})
		})
	}
}

// longestPause is more than a question waits that was asked in vain.
const longestPause = 2 * time.Hour

// Answers to questions that were not asked, or of nodes that were not, count for nothing.
func TestAnswersWithoutAQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		lamp := module("lamp", "1")
		var open []string
		f.answer["mute"] = func(r pxp.Request, _ jsontext.Value) jsontext.Value { open = append(open, r.Transaction); return nil }
		f.connect("mute", lamp)
		f.questions(2 * time.Second)
		list := pxp.Data(pxp.ListResults{Modules: pxp.Data(action.NewSet([]action.Listed{action.ListedOf(lamp)}))})
		for node, transaction := range map[fleet.Certname]string{"other": open[0], "mute": "modules-none"} {
			if !f.service.Answered(t.Context(), node, transaction, list) || !f.service.Refused(t.Context(), node, transaction, "no") {
				t.Errorf("an answer of %s to %s is not known as one of ours", node, transaction)
			}
		}
		if f.service.Answered(t.Context(), "mute", "job-1", list) || f.service.Refused(t.Context(), "mute", "job-1", "no") {
			t.Error("the answer to a job is taken")
		}
		if _, set, _ := f.service.OfNode("mute"); len(set) > 0 {
			t.Errorf("%v is believed", set)
		}
		if !f.service.Answered(t.Context(), "mute", open[0], list) {
			t.Error("the answer itself")
		}
		if _, set, _ := f.service.OfNode("mute"); len(set) != 1 {
			t.Errorf("the right answer of the right node is not believed: %v", set)
		}
	})
}

// A node cannot make the server write or ask without end.
func TestNodesThatFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		refused := 0
		for i := range 1000 {
			err := f.service.Told("flood", pxp.AgentTold{Modules: string(fleet.DigestOf([]byte(fmt.Sprint(i)))), Version: "1", OS: "linux", Arch: "amd64"})
			if fault.Of(err) == fault.Unavailable && err != nil {
				refused++
			}
		}
		f.questions(time.Minute)
		if refused < 900 {
			t.Errorf("%d of 1000 are refused", refused)
		}
		known, err := f.store.Catalogue(t.Context())
		if err != nil || len(known.Agents) != 1 || len(known.Sets) != 0 {
			t.Errorf("stored: %+v, %v", known, err)
		}
	})
}

// Beyond the limits nothing is asked for, and nothing taken of what was asked before.
func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.kill()
		l := catalogue.DefaultLimits()
		l.Sets, l.Bytes = 2, 100
		f.start(l)
		for i := range 20 { // all are asked at once
			f.connect(fleet.Certname(fmt.Sprintf("node-%d", i)), module("lamp", fmt.Sprint(i)))
		}
		f.questions(time.Minute)
		known, err := f.store.Catalogue(t.Context())
		if err != nil || len(known.Agents) != 20 || len(known.Sets) != 2 || len(known.Modules) != 1 {
			t.Errorf("%d agents, %d sets, %d modules, %v", len(known.Agents), len(known.Sets), len(known.Modules), err)
		}
	})
}

// What no node has any more is forgotten, and known again when it comes back; a failed write is done again.
func TestWhatIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.store.Fail(errors.New("the disk is full"))
		f.connect("a", module("lamp", "1"))
		f.connect("b", module("lamp", "1"))
		f.questions(5 * time.Second)
		if metadata, err := f.newest("lamp"); err != nil || metadata.Version != "1" {
			t.Errorf("what is not written yet: %+v, %v", metadata, err)
		}
		f.store.Fail(nil)
		counts := func(agents, sets, modules int) {
			t.Helper()
			f.questions(5 * time.Second)
			known, err := f.store.Catalogue(t.Context())
			if err != nil || len(known.Agents) != agents || len(known.Sets) != sets || len(known.Modules) != modules {
				t.Errorf("%d agents, %d sets, %d modules, %v; want %d, %d, %d", len(known.Agents), len(known.Sets), len(known.Modules), err, agents, sets, modules)
			}
		}
		counts(2, 1, 1)
		f.connect("a", module("lamp", "2"))
		counts(2, 2, 2)
		f.connect("b", module("lamp", "2"))
		counts(2, 1, 1)
		f.connect("b", module("lamp", "1"))
		counts(2, 2, 2)
		f.store.Purge("b") // while it is connected
		f.service.Forget("b", "never")
		counts(2, 2, 2)
		f.mu.Lock()
		f.away["b"] = true
		f.mu.Unlock()
		f.store.Purge("b")
		f.service.Forget("b")
		counts(1, 1, 1)
		if _, _, told := f.service.OfNode("b"); told {
			t.Error("a node that was purged is known")
		}
	})
}

// The metadata of one module do not pass for those of another, and problems are told.
func TestProblems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		lamp := module("lamp", "1")
		f.connect("a", lamp)
		f.questions(5 * time.Second)
		set := action.NewSet([]action.Listed{
			{Name: "fan", Version: "9", Provider: action.External, Digest: lamp.Digest()},
			{Name: "broken", Provider: action.Choria, Problem: "it has no metadata"},
		})
		f.answer["b"] = func(pxp.Request, jsontext.Value) jsontext.Value {
			return pxp.Data(pxp.ListResults{Modules: pxp.Data(set)})
		}
		f.modules["b"] = []action.Module{}
		if err := f.service.Told("b", pxp.AgentTold{Modules: string(set.Digest()), Version: "1", OS: "linux", Arch: "amd64"}); err != nil {
			t.Fatal(err)
		}
		f.questions(5 * time.Second)
		want := []catalogue.Module{
			{Name: "broken", Problems: []catalogue.Problem{{Provider: action.Choria, Text: "it has no metadata", Nodes: []fleet.Certname{"b"}}}},
			{Name: "fan", Problems: []catalogue.Problem{
				{Version: "9", Provider: action.External, Text: "its node tells the metadata of another module as those of this one", Nodes: []fleet.Certname{"b"}},
			}},
			{Name: "lamp", Description: "What lamp 1 does", Versions: []catalogue.Version{
				{Version: "1", Digest: lamp.Digest(), Provider: action.External, Nodes: 1, Known: true},
			}},
		}
		if diff := cmp.Diff(want, f.service.Modules(everybody)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if visible := f.service.Modules(func(node fleet.Certname) bool { return node != "b" }); len(visible) != 1 {
			t.Errorf("who may not see the node sees %v", visible)
		}
		if _, err := f.newest("broken"); fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "it has no metadata") {
			t.Error(err)
		}
	})
}

// A newer version that lacks an action does not hide it: other nodes have it.
func TestLatestHasTheAction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		old, fresh := module("lamp", "1"), module("lamp", "2")
		old.Actions = append(slices.Clone(old.Actions), action.Action{Name: "zap", Input: jsontext.Value(`{}`), Results: jsontext.Value(`{}`)})
		f.connect("a", old)
		f.connect("b", fresh)
		f.questions(5 * time.Second)
		for having, want := range map[string]string{"zap": "1", fresh.Actions[0].Name: "2", "nothing": "2"} {
			if got, err := f.service.Latest(t.Context(), "lamp", having); err != nil || got.Version != want {
				t.Errorf("with %s: version %s, %v, want %s", having, got.Version, err, want)
			}
		}
		if _, err := f.service.Latest(t.Context(), "fan", "on"); fault.Of(err) != fault.NotFound {
			t.Error(err)
		}
	})
}

// The text of a set and of a description is the same after it was read: digests hold.
func TestDigestsHold(t *testing.T) {
	t.Parallel()
	lamp := module("lamp", "1")
	lamp.Actions[0].Input = jsontext.Value(`{"properties": {"b": {"default": 1.0, "x-order": 2}, "a": {"maxLength": 10}}, "type": "object"}`)
	read, err := action.Parse("lamp", lamp.Text())
	if err != nil || read.Digest() != lamp.Digest() {
		t.Errorf("%s and %s, %v", lamp.Digest(), read.Digest(), err)
	}
	set := action.NewSet([]action.Listed{action.ListedOf(lamp), {Name: "x", Provider: action.Choria, Problem: "a \"b\" <c> ä\u2028"}})
	text, err := json.Marshal([]action.Listed(set))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := action.ParseSet(text)
	if err != nil || parsed.Digest() != set.Digest() {
		t.Errorf("%s and %s, %v", set.Digest(), parsed.Digest(), err)
	}
}
