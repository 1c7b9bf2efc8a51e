package compile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// plain is a compile.Plain that a test writes.
type plain struct {
	mu      sync.Mutex
	asked   int
	answers []compile.Recorded
	script  func(n int, o compile.Order) (compile.Opinion, error)
}

func (p *plain) Opinion(_ context.Context, o compile.Order, answers []compile.Recorded) (compile.Opinion, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	p.answers = answers
	return p.script(p.asked, o)
}

func (p *plain) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// agreeing gives what reading gives.
func agreeing(_ int, o compile.Order) (compile.Opinion, error) {
	return compile.Opinion{Catalog: compiletest.Catalog(compile.Order{Node: o.Node, Facts: readOf(o.Facts, compile.Reads{Values: []string{"/facts/os"}})})}, nil
}

// saying gives a catalog of one fact's text.
func saying(text string) compile.Opinion {
	return compile.Opinion{Catalog: compiletest.Catalog(compile.Order{Node: "a.example", Facts: json.RawMessage(text)})}
}

// verifyWorld is a reuseWorld with a verifier.
type verifyWorld struct {
	*reuseWorld
	plain    *plain
	verifier *compile.Verifier
	share    float64
	alarms   []compile.Verification
	log      bytes.Buffer
}

func newVerifyWorld(t *testing.T) *verifyWorld {
	t.Helper()
	w := &verifyWorld{reuseWorld: newReuseWorld(t), plain: &plain{script: agreeing}}
	w.verifier = compile.NewVerifier(compile.VerifierParts{
		Plain: w.plain, Store: w.queue.Verifications, History: w.queue, Reuser: w.reuser, Gate: w.gate, Share: func() float64 { return w.share },
		AfterDeploy: func() int { return 2 }, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Alarm: func(_ context.Context, v compile.Verification) { w.alarms = append(w.alarms, v) },
	}, compile.DefaultVerifier())
	w.dispatcher.Verifier = w.verifier
	return w
}

func (w *verifyWorld) verify(t *testing.T) compile.Verification {
	t.Helper()
	v, err := w.verifier.Verify(t.Context(), "a.example", production, version1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// runVerifier runs it until the returned function is called.
func (w *verifyWorld) runVerifier(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.verifier.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func TestAnEqualCatalogIsTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		w.get(t, version1, "1")
		w.facts.Set("a.example", `{"os":"debian","unread":2}`)
		if v := w.verify(t); v.Outcome != compile.Same || v.Cause != compile.ByHand || v.Catalog == "" || v.Inputs == "" {
			t.Errorf("got %+v", v)
		}
		if _, err := w.verifier.Verify(t.Context(), "b.example", production, version1); fault.Of(err) != fault.NotFound {
			t.Errorf("a node without a catalog: %v, want NotFound", err)
		}
	})
}

func TestADifferenceIsAnAlarmAndStopsReuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		w.get(t, version1, "1")
		w.plain.script = func(int, compile.Order) (compile.Opinion, error) { return saying(`"other"`), nil }
		v := w.verify(t)
		if v.Outcome != compile.Differs || v.Count == 0 || len(v.Differences) == 0 || len(w.alarms) != 1 || w.alarms[0].ID != v.ID {
			t.Errorf("got %+v, alarms %+v", v, w.alarms)
		}
		const alarm = `level=ERROR msg="a catalog is not what plain Puppet gives: no catalog of this version is used again" node=a.example`
		if text := w.log.String(); !strings.Contains(text, alarm) {
			t.Errorf("the log says %s", text)
		}
		if w.plain.count() != 2 {
			t.Errorf("plain Puppet was asked %d times, want a second time to see whether it agrees with itself", w.plain.count())
		}
		if _, n := w.get(t, version1, "2"); n != 2 {
			t.Errorf("%d compilations, want another one: reuse is stopped", n)
		}
		for _, node := range []fleet.Certname{"a.example", "b.example"} {
			if stops, err := w.queue.Reusables.ReuseStops(t.Context(), node, production); err != nil || len(stops) != 1 {
				t.Errorf("%s: %d stops, %v: want that of the version", node, len(stops), err)
			}
		}
		if s := w.verifier.Stats(); s.Outcomes[compile.Differs] != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

// What was read and changed since says nothing about the compiler.
func TestChangedInputsAreNotComparable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		w.get(t, version1, "1")
		w.facts.Set("a.example", `{"os":"redhat"}`)
		if v := w.verify(t); v.Outcome != compile.NotComparable || !strings.Contains(v.Reason, "facts.os") || w.plain.count() != 0 {
			t.Errorf("got %+v after asking %d times", v, w.plain.count())
		}
	})
}

func TestVolatileCodeIsNoAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		w.compiler.Play(reading(compile.Reads{Values: []string{"/facts/os"}, Volatile: []string{"reads the clock"}}))
		w.get(t, version1, "1")
		if v := w.verify(t); v.Outcome != compile.Same {
			t.Errorf("an equal catalog of volatile code is %+v", v)
		}
		w.plain.script = func(int, compile.Order) (compile.Opinion, error) { return saying(`"later"`), nil }
		if v := w.verify(t); v.Outcome != compile.NotComparable || !strings.Contains(v.Reason, "reads the clock") || len(w.alarms) != 0 {
			t.Errorf("got %+v, alarms %+v", v, w.alarms)
		}
	})
}

// Code that changes each time and was not noticed is a catalog that is used again by mistake.
func TestUnnoticedVolatileCodeIsAnAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		w.get(t, version1, "1")
		w.plain.script = func(n int, _ compile.Order) (compile.Opinion, error) { return saying(fmt.Sprint(n)), nil }
		if v := w.verify(t); v.Outcome != compile.Differs || !strings.Contains(v.Differences[0].What, "each time") {
			t.Errorf("got %+v", v)
		}
	})
}

func TestFailuresAreCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		fails := &compile.Error{Cause: compile.CauseCode, Message: "no such class"}
		w.compiler.Play(func(context.Context, compile.Order) (compile.Outcome, error) { return compile.Outcome{}, fails })
		if _, err := w.service.Catalog(t.Context(), w.ask("a.example", "1")); err == nil {
			t.Fatal("it compiles")
		}
		w.plain.script = func(int, compile.Order) (compile.Opinion, error) {
			return compile.Opinion{Err: &compile.Error{Message: "no such class"}}, nil
		}
		if v := w.verify(t); v.Outcome != compile.Same || v.Catalog != "" {
			t.Errorf("the same words: %+v", v)
		}
		w.plain.script = agreeing
		if v := w.verify(t); v.Outcome != compile.Differs || v.Differences[0].What != "only one of both compiles" {
			t.Errorf("only plain Puppet compiles: %+v", v)
		}
	})
}

func TestWhatPlainPuppetCannotDoIsNoAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		w.get(t, version1, "1")
		for _, err := range []error{errors.New("no process"), &compile.Error{Cause: compile.CauseTimeout, Message: "too long"}} {
			w.plain.script = func(int, compile.Order) (compile.Opinion, error) { return compile.Opinion{}, err }
			if v := w.verify(t); v.Outcome != compile.NotVerified || v.Reason == "" || len(w.alarms) != 0 {
				t.Errorf("got %+v", v)
			}
		}
	})
}

// A share of compilations is verified, behind a bounded queue.
func TestAShareIsVerified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		defer w.runVerifier(t.Context())()
		w.get(t, version1, "1")
		synctest.Wait()
		if w.plain.count() != 0 {
			t.Error("a share of 0 was verified")
		}
		w.share = 1
		w.facts.Set("a.example", `{"os":"redhat"}`)
		w.get(t, version1, "2")
		synctest.Wait()
		list, err := w.queue.Verifications.Verifications(t.Context(), compile.VerificationFilter{Limit: 10})
		if err != nil || len(list) != 1 || list[0].Cause != compile.Sampled || list[0].Outcome != compile.Same {
			t.Errorf("verified %+v, %v", list, err)
		}
	})
}

func TestTooManySamplesAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		w.share = 1
		for i := range 70 { // nobody verifies them
			w.facts.Set("a.example", fmt.Sprintf(`{"os":"%d"}`, i))
			w.get(t, version1, fmt.Sprint(i))
		}
		synctest.Wait()
		if s := w.verifier.Stats(); s.Waiting != 64 || s.Dropped != 6 {
			t.Errorf("%d wait, %d were dropped, want 64 and 6", s.Waiting, s.Dropped)
		}
	})
}

// After a deploy one node of each of the largest sets of classes is verified, when its catalog is there.
func TestDeploysAreVerified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		defer w.runVerifier(t.Context())()
		sets := []compile.ClassSet{{Node: "a.example", Nodes: 5}, {Node: "b.example", Nodes: 2}, {Node: "c.example", Nodes: 1}}
		w.queue.SetClassSets(sets...)
		w.verifier.Deployed(production, version1)
		<-time.After(time.Minute)
		if w.plain.count() != 0 {
			t.Error("something was verified before it was compiled")
		}
		w.get(t, version1, "1")
		<-time.After(time.Minute)
		list, err := w.queue.Verifications.Verifications(t.Context(), compile.VerificationFilter{Limit: 10})
		if err != nil || len(list) != 1 || list[0].Node != "a.example" || list[0].Cause != compile.AfterDeploy {
			t.Errorf("verified %+v, %v", list, err)
		}
		<-time.After(2 * time.Hour)
		if s := w.verifier.Stats(); s.Dropped != 1 {
			t.Errorf("%d were given up, want b.example", s.Dropped)
		}
	})
}

// While the machine is full nothing is verified.
func TestVerifyingWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newVerifyWorld(t)
		defer w.start(t.Context())()
		defer w.runVerifier(t.Context())()
		w.share = 1
		w.gate.Set(compile.Full)
		w.get(t, version1, "1")
		<-time.After(time.Minute)
		if w.plain.count() != 0 {
			t.Error("it did not wait")
		}
		w.gate.Set(compile.Idle)
		<-time.After(time.Minute)
		if w.plain.count() != 1 {
			t.Errorf("verified %d times, want once", w.plain.count())
		}
	})
}
