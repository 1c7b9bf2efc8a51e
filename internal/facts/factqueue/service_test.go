package factqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/facts/factqueue/factqueuetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const web = fleet.Certname("web.example")

// watch is what the catalog of web read.
type watch []string

func (w watch) Watched(_ context.Context, node fleet.Certname) ([]string, error) {
	if node != web {
		return nil, errors.New("not known now")
	}
	return w, nil
}

func open(tb testing.TB, f *factqueuetest.Fake, c factqueue.Config) *factqueue.Service {
	tb.Helper()
	s, err := factqueue.New(tb.Context(), factqueue.Parts{Store: f, Inventory: f, Watch: watch{"/os/family", "/role"}}, c)
	must(tb, err)
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func set(number int64, values string) factqueue.Set {
	return factqueue.Set{Node: web, Number: number, Values: json.RawMessage(values)}
}

// patch is the difference between two sets.
func patch(tb testing.TB, number int64, before, after string) factqueue.Patch {
	tb.Helper()
	p, err := facts.Difference([]byte(before), []byte(after))
	must(tb, err)
	return factqueue.Patch{Set: factqueue.Set{Node: web, Number: number}, Base: fleet.DigestOf([]byte(before)), Apply: p.Apply}
}

func TestSubmissionsAreAppliedAtOnce(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, factqueuetest.NewFake(), factqueue.Config{}), t.Context()
	const one, two = `{"a":1,"role":"web"}`, `{"a":2,"role":"web"}`
	got, err := s.Put(ctx, set(10, one))
	must(t, err)
	want := factqueue.Answer{Number: 10, Digest: fleet.DigestOf([]byte(one)), Seq: 1, Changed: 2, Watched: []string{"/os/family", "/role"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all facts (-want +got):\n%s", diff)
	}
	got, err = s.Patch(ctx, patch(t, 11, one, two))
	must(t, err)
	want.Number, want.Digest, want.Seq, want.Changed = 11, fleet.DigestOf([]byte(two)), 2, 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a difference (-want +got):\n%s", diff)
	}
	for name, again := range map[string]func() (factqueue.Answer, error){
		"the difference again": func() (factqueue.Answer, error) { return s.Patch(ctx, patch(t, 11, one, two)) },
		"all facts again":      func() (factqueue.Answer, error) { return s.Put(ctx, set(11, two)) },
		"the state":            func() (factqueue.Answer, error) { return s.State(ctx, web) },
	} {
		got, err := again()
		must(t, err)
		got.Changed, want.Changed = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, late := range map[string]func() (factqueue.Answer, error){
		"all facts, late":     func() (factqueue.Answer, error) { return s.Put(ctx, set(10, one)) },
		"a difference, late":  func() (factqueue.Answer, error) { return s.Patch(ctx, patch(t, 9, two, one)) },
		"against another set": func() (factqueue.Answer, error) { return s.Patch(ctx, patch(t, 12, one, two)) },
		"of an unknown node": func() (factqueue.Answer, error) {
			p := patch(t, 1, one, two)
			p.Node = "new.example"
			return s.Patch(ctx, p)
		},
	} {
		if _, err := late(); fault.Of(err) != fault.Conflict || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.State(ctx, "new.example"); fault.Of(err) != fault.NotFound {
		t.Errorf("the state of an unknown node: %v", err)
	}
}

func TestABurstIsQueued(t *testing.T) {
	t.Parallel()
	f := factqueuetest.NewFake()
	s, ctx := open(t, f, factqueue.Config{QueueBytes: 4000}), t.Context()
	free := s.Crowd()
	accepted := 0
	for i := range 1000 {
		one := set(1, fmt.Sprintf(`{"number":%d,"more":"12345678901234567890"}`, i))
		one.Node = fleet.Certname(fmt.Sprintf("n%d.example", i))
		got, err := s.Put(ctx, one)
		if fault.Is(err, fault.Unavailable) {
			if fault.RetryAfter(err) < 10*time.Second {
				t.Errorf("come back in %s", fault.RetryAfter(err))
			}
			break
		}
		must(t, err)
		if !got.Queued || got.Digest == "" {
			t.Errorf("%+v", got)
		}
		accepted++
	}
	if accepted < 50 || accepted > 100 {
		t.Errorf("%d sets were accepted", accepted)
	}
	got, err := s.State(ctx, "n0.example")
	must(t, err)
	if !got.Queued || got.Number != 1 {
		t.Errorf("the state of a queued set: %+v", got)
	}
	free()
	restarted := open(t, f, factqueue.Config{})
	must(t, restarted.Drain(ctx))
	if load := restarted.Load(); load != (factqueue.Load{}) {
		t.Errorf("the queue after it was drained: %+v", load)
	}
	for i := range accepted {
		stored, err := f.Facts(ctx, fleet.Certname(fmt.Sprintf("n%d.example", i)))
		if err != nil || stored.Seq != 1 {
			t.Fatalf("n%d: %+v, %v", i, stored, err)
		}
	}
}

// A difference is against the newest set that was accepted, though it is not applied.
func TestADifferenceAgainstAQueuedSet(t *testing.T) {
	t.Parallel()
	f := factqueuetest.NewFake()
	s, ctx := open(t, f, factqueue.Config{}), t.Context()
	const one, two = `{"a":1}`, `{"a":2,"b":1}`
	free := s.Crowd()
	defer free()
	_, err := s.Put(ctx, set(1, one))
	must(t, err)
	got, err := s.Patch(ctx, patch(t, 2, one, two))
	must(t, err)
	if !got.Queued || s.Load().Sets != 1 {
		t.Errorf("%+v, %+v", got, s.Load())
	}
	must(t, s.Drain(ctx))
	stored, err := f.Facts(ctx, web)
	must(t, err)
	if string(stored.Values) != two || stored.Seq != 1 {
		t.Errorf("stored: %s, seq %d", stored.Values, stored.Seq)
	}
}

// broken fails as often as it says.
type broken struct {
	*factqueuetest.Fake
	left int
}

func (b *broken) SaveFacts(ctx context.Context, set factqueue.Set) (factqueue.Stored, error) {
	if b.left > 0 {
		b.left--
		return factqueue.Stored{}, errors.New("the disk is full")
	}
	return b.Fake.SaveFacts(ctx, set)
}

func TestTheWorkerGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := factqueuetest.NewFake()
		inventory := &broken{f, 3}
		s, err := factqueue.New(t.Context(), factqueue.Parts{Store: f, Inventory: inventory, Watch: watch{}}, factqueue.Config{Workers: 1})
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		free := s.Crowd()
		start := time.Now()
		_, err = s.Put(ctx, set(1, `{"a":1}`))
		must(t, err)
		free()
		for s.Load().Sets > 0 {
			<-time.After(time.Second)
		}
		if took := time.Since(start); took < 7*time.Second || took > 9*time.Second { // 1 + 2 + 4
			t.Errorf("applied after %s", took)
		}
		stop()
		must(t, <-ended)
	})
}
