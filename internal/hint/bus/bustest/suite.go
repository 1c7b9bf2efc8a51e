// Package bustest holds implementations of bus.Bus to the port's contract.
package bustest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint/bus"
)

// World is a bus that a test has to itself.
type World interface {
	// Join makes the access of one more server. The test closes it.
	Join(t *testing.T) bus.Bus
	// Cut takes the bus away from all, and with false gives it back.
	Cut(t *testing.T, cut bool)
}

// Run holds the buses that open makes to the port's contract, but for the tests of these names.
func Run(t *testing.T, open func(t *testing.T) World, but ...string) {
	t.Helper()
	tests := map[string]func(*testing.T, World){
		"a message reaches all others":             reachesOthers,
		"words of a subject may be left open":      wildcards,
		"messages come in their order":             inOrder,
		"one of a group gets each message":         groups,
		"a request is answered":                    answered,
		"an error is an answer":                    answeredWithAnError,
		"a request that nobody listens to ends":    nobodyListens,
		"a request that is not answered ends":      notAnswered,
		"what is too large goes nowhere":           tooLarge,
		"who is slow holds nobody up, and is told": slow,
		"who stopped hears nothing":                stopped,
		"a closed bus carries nothing":             closed,
		"what was published before the end comes":  comesBeforeTheEnd,
		"a bus that is away holds nobody up":       away,
		"many use it at once":                      atOnce,
	}
	for _, name := range but {
		if tests[name] == nil {
			t.Errorf("there is no test %q to be left out", name)
		}
		delete(tests, name)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// Until waits until something is so.
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !is(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it never became so: %s", what)
		}
	}
}

// member is a bus that is up.
func member(t *testing.T, w World) bus.Bus {
	t.Helper()
	b := w.Join(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	Until(t, "the bus is up", func() bool { return b.State().Up })
	return b
}

// ear hears what comes to a subscription.
type ear struct {
	mu   sync.Mutex
	got  []string
	gaps atomic.Int64
	stop func()
}

func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

func listen(t *testing.T, b bus.Bus, subject, group string) *ear {
	t.Helper()
	e := &ear{}
	var err error
	e.stop, err = b.Subscribe(bus.Subscriber{
		Subject: subject, Group: group, Gap: func() { e.gaps.Add(1) },
		Take: func(_ context.Context, subject string, data []byte) ([]byte, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.got = append(e.got, subject+" "+string(data))
			return nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func serve(t *testing.T, b bus.Bus, subject string, take func(ctx context.Context, subject string, data []byte) ([]byte, error)) {
	t.Helper()
	if _, err := b.Subscribe(bus.Subscriber{Subject: subject, Take: take}); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, b bus.Bus, subject, data string) {
	t.Helper()
	if err := b.Publish(subject, []byte(data)); err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
}

func wants(t *testing.T, e *ear, want ...string) {
	t.Helper()
	Until(t, "as many messages came as were sent", func() bool { return len(e.heard()) >= len(want) })
	if got := e.heard(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

func reachesOthers(t *testing.T, w World) {
	a, b, c := member(t, w), member(t, w), member(t, w)
	own, first, second := listen(t, a, "tutti.hint", ""), listen(t, b, "tutti.hint", ""), listen(t, c, "tutti.hint", "")
	data := []byte("one")
	if err := a.Publish("tutti.hint", data); err != nil {
		t.Fatal(err)
	}
	copy(data, "two") // it was not kept
	publish(t, a, "tutti.other", "to nobody")
	wants(t, second, "tutti.hint one") // what two servers publish may come in either order
	publish(t, b, "tutti.hint", "three")
	wants(t, second, "tutti.hint one", "tutti.hint three")
	wants(t, first, "tutti.hint one")
	wants(t, own, "tutti.hint three")
	if s := a.State(); s.Sent < 2 || s.Received != 1 || s.Kind == "" || s.Since.IsZero() {
		t.Errorf("the state: %+v", s)
	}
}

func wildcards(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	one, rest, end := listen(t, b, "t.srv.*.deliver", ""), listen(t, b, "t.srv.>", ""), listen(t, b, "t.end", "")
	for _, subject := range []string{"t.srv.x.deliver", "t.srv.x.drop", "t.srv.x.y.deliver", "t.srv", "x.srv.x.deliver", "t.end"} {
		publish(t, a, subject, "")
	}
	wants(t, end, "t.end ")
	wants(t, one, "t.srv.x.deliver ")
	wants(t, rest, "t.srv.x.deliver ", "t.srv.x.drop ", "t.srv.x.y.deliver ")
}

func inOrder(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	e := listen(t, b, "t", "")
	var want []string
	for i := range 1000 {
		publish(t, a, "t", fmt.Sprint(i))
		want = append(want, fmt.Sprint("t ", i))
	}
	wants(t, e, want...)
}

func groups(t *testing.T, w World) {
	a, b, c := member(t, w), member(t, w), member(t, w)
	first, second, all := listen(t, b, "t", "g"), listen(t, c, "t", "g"), listen(t, c, "t", "")
	own := listen(t, a, "t", "g")
	const n = 200
	for i := range n {
		publish(t, a, "t", fmt.Sprint(i))
	}
	Until(t, "all came", func() bool { return len(all.heard()) == n && len(first.heard())+len(second.heard()) == n })
	seen := slices.Concat(first.heard(), second.heard())
	slices.Sort(seen)
	if len(slices.Compact(seen)) != n {
		t.Errorf("of %d messages the group got %d: %d and %d", n, len(slices.Compact(seen)), len(first.heard()), len(second.heard()))
	}
	if got := own.heard(); len(got) > 0 {
		t.Errorf("who published got %q", got)
	}
}

func answered(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	serve(t, b, "t.srv.b.*", func(_ context.Context, subject string, data []byte) ([]byte, error) {
		return []byte(subject + " took " + string(data)), nil
	})
	for i := range 20 {
		got, err := a.Request(t.Context(), "t.srv.b.deliver", []byte(fmt.Sprint(i)))
		if want := fmt.Sprint("t.srv.b.deliver took ", i); err != nil || string(got) != want {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
}

func answeredWithAnError(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	errs := []error{
		fault.New(fault.NotFound, "Not connected."),
		&fault.Error{Kind: fault.Unavailable, Detail: "too much is on its way", Hint: "try again later"},
		errors.New("disk on fire"),
	}
	serve(t, b, "t", func(_ context.Context, _ string, data []byte) ([]byte, error) { return nil, errs[data[0]-'0'] })
	for i, want := range errs {
		_, err := a.Request(t.Context(), "t", []byte(fmt.Sprint(i)))
		if err == nil || fault.Of(err) != fault.Of(want) || fault.Detail(err) != fault.Detail(want) || fault.Hint(err) != fault.Hint(want) {
			t.Errorf("%v came as %v", want, err)
		}
		if strings.Contains(fmt.Sprint(err), "fire") {
			t.Errorf("what is only for the log came along: %v", err)
		}
	}
}

func nobodyListens(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	serve(t, a, "t", func(context.Context, string, []byte) ([]byte, error) { return nil, nil }) // oneself is nobody
	began := time.Now()
	if _, err := a.Request(t.Context(), "t", nil); !fault.Is(err, fault.NotFound) || time.Since(began) > patience/2 {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if _, err := b.Request(t.Context(), "t", nil); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

func notAnswered(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	serve(t, b, "t", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done() // until it is closed
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Request(ctx, "t", nil); !fault.Is(err, fault.Unavailable) || ctx.Err() == nil {
		t.Errorf("%v", err)
	}
}

func tooLarge(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	e := listen(t, b, "t.all", "")
	serve(t, b, "t", func(_ context.Context, _ string, data []byte) ([]byte, error) { return append(data, 'x'), nil })
	most := make([]byte, bus.MaxBytes)
	if err := a.Publish("t.all", append(most, 0)); !fault.Is(err, fault.Invalid) {
		t.Errorf("published: %v", err)
	}
	if _, err := a.Request(t.Context(), "t", append(most, 0)); !fault.Is(err, fault.Invalid) {
		t.Errorf("requested: %v", err)
	}
	if _, err := a.Request(t.Context(), "t", most); !fault.Is(err, fault.Invalid) {
		t.Errorf("answered: %v", err)
	}
	if got, err := a.Request(t.Context(), "t", most[1:]); err != nil || len(got) != bus.MaxBytes {
		t.Errorf("what just fits: %d bytes, %v", len(got), err)
	}
	publish(t, a, "t.all", string(most))
	Until(t, "what just fits came", func() bool { return len(e.heard()) == 1 })
}

func slow(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	release, began := make(chan struct{}), make(chan struct{})
	var took, gaps atomic.Int64
	if _, err := b.Subscribe(bus.Subscriber{
		Subject: "t", Gap: func() { gaps.Add(1) },
		Take: func(context.Context, string, []byte) ([]byte, error) {
			if took.Add(1) == 1 {
				close(began)
				<-release
			}
			return nil, nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	quick := listen(t, b, "t.quick", "")
	publish(t, a, "t", "")
	<-began
	const more = bus.WaitingMessages + 500
	for sent := 0; sent < more; {
		switch err := a.Publish("t", nil); {
		case err == nil:
			sent++
		case !fault.Is(err, fault.Unavailable): // it takes nothing for a moment
			t.Fatal(err)
		}
	}
	publish(t, a, "t.quick", "")
	wants(t, quick, "t.quick ")
	close(release)
	Until(t, "the gap was told", func() bool { return gaps.Load() > 0 && b.State().Lost > 0 })
	if s := b.State(); s.Gaps != gaps.Load() || took.Load() > more {
		t.Errorf("%d gaps, and the state is %+v after %d messages", gaps.Load(), s, took.Load())
	}
}

func stopped(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	first, second := listen(t, b, "t", ""), listen(t, b, "t", "")
	publish(t, a, "t", "one")
	wants(t, first, "t one")
	first.stop()
	first.stop()
	publish(t, a, "t", "two")
	wants(t, second, "t one", "t two")
	wants(t, first, "t one")
}

func closed(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	began := make(chan struct{})
	var over atomic.Bool
	serve(t, b, "t", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(began)
		<-ctx.Done()
		over.Store(true)
		return nil, nil
	})
	publish(t, a, "t", "")
	<-began
	for range 2 {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if !over.Load() {
		t.Error("a message is taken after the end")
	}
	if _, err := b.Subscribe(bus.Subscriber{Subject: "t"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("subscribed: %v", err)
	}
	if err := b.Publish("t", nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("published: %v", err)
	}
	if _, err := b.Request(t.Context(), "t", nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("requested: %v", err)
	}
	if b.State().Up {
		t.Error("what is closed is up")
	}
}

func comesBeforeTheEnd(t *testing.T, w World) {
	b := member(t, w)
	e := listen(t, b, "t", "")
	var want []string
	for i := range 20 {
		a := member(t, w)
		for j := range 50 {
			word := fmt.Sprint(i, ".", j)
			publish(t, a, "t", word)
			want = append(want, "t "+word)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		wants(t, e, want...)
	}
}

func away(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	e := listen(t, b, "t", "")
	publish(t, a, "t", "one")
	wants(t, e, "t one")
	w.Cut(t, true)
	Until(t, "it is known that it is away", func() bool { return !a.State().Up && !b.State().Up })
	began := time.Now()
	for range 1000 {
		if err := a.Publish("t", []byte("lost")); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("published: %v", err)
		}
		if _, err := a.Request(t.Context(), "t", nil); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("requested: %v", err)
		}
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("1000 messages took %s", took)
	}
	late := listen(t, b, "t.late", "") // who subscribes meanwhile is known afterwards
	if s := a.State(); s.Problem == "" || s.Refused < 2000 {
		t.Errorf("the state: %+v", s)
	}
	w.Cut(t, false)
	Until(t, "it is back", func() bool { return a.State().Up && b.State().Up && e.gaps.Load() > 0 })
	Until(t, "messages come", func() bool {
		_ = a.Publish("t", []byte("two"))
		_ = a.Publish("t.late", []byte("two"))
		return slices.Contains(e.heard(), "t two") && slices.Contains(late.heard(), "t.late two")
	})
	if slices.Contains(e.heard(), "t lost") {
		t.Error("what went nowhere came later")
	}
	if s := b.State(); s.Problem != "" {
		t.Errorf("the state: %+v", s)
	}
}

func atOnce(t *testing.T, w World) {
	a, b := member(t, w), member(t, w)
	serve(t, b, "t", func(_ context.Context, _ string, data []byte) ([]byte, error) { return data, nil })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				want := fmt.Sprint(i, " ", j)
				if got, err := a.Request(t.Context(), "t", []byte(want)); err != nil || string(got) != want {
					t.Errorf("%q, %v, want %q", got, err, want)
				}
				stop, err := a.Subscribe(bus.Subscriber{Subject: "t.x", Take: func(context.Context, string, []byte) ([]byte, error) { return nil, nil }})
				if err != nil {
					t.Error(err)
					return
				}
				_ = b.Publish("t.x", nil)
				_ = a.State()
				stop()
			}
		})
	}
	all.Wait()
}
