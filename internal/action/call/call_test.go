package call_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// nodes are a fleet whose agents do what a function says.
type nodes struct {
	caller *call.Caller
	act    map[fleet.Certname]func(n *nodes, node fleet.Certname, r pxp.Request) error

	mu    sync.Mutex
	asked map[fleet.Certname][]time.Duration // since the beginning
	begun time.Time
}

func newNodes(act map[fleet.Certname]func(*nodes, fleet.Certname, pxp.Request) error) *nodes {
	n := &nodes{act: act, asked: map[fleet.Certname][]time.Duration{}, begun: time.Now()}
	id := 0
	n.caller = call.New(n, func() string { id++; return fmt.Sprint(id) })
	return n
}

func (n *nodes) Ask(_ context.Context, node fleet.Certname, r pxp.Request) error {
	n.mu.Lock()
	n.asked[node] = append(n.asked[node], time.Since(n.begun))
	n.mu.Unlock()
	act := n.act[node]
	if act == nil {
		return fault.New(fault.NotFound, "not connected")
	}
	return act(n, node, r)
}

type act = func(*nodes, fleet.Certname, pxp.Request) error

// says answers after a while.
func says(after time.Duration, reply call.Reply) act {
	return func(n *nodes, node fleet.Certname, r pxp.Request) error {
		mine := reply
		mine.Node, mine.Transaction = node, r.Transaction
		go func() {
			<-time.After(after)
			n.caller.Answered(context.Background(), mine)
		}()
		return nil
	}
}

func mute(*nodes, fleet.Certname, pxp.Request) error { return nil }

func (n *nodes) ask(ctx context.Context, q call.Question) (answers []action.Answer) {
	if q.Nodes == nil {
		for node := range n.act {
			q.Nodes = append(q.Nodes, node)
		}
		slices.Sort(q.Nodes)
	}
	n.caller.Ask(ctx, q, func(some []action.Answer) { answers = append(answers, some...) })
	slices.SortFunc(answers, func(a, b action.Answer) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return answers
}

func TestEveryNodeHasANamedState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(map[fleet.Certname]act{
			"a-done":    says(time.Second, call.Reply{Results: jsontext.Value(`{"x":1}`)}),
			"b-aborted": says(0, call.Reply{Failed: true, Code: 1, Description: "no bulb", Results: jsontext.Value(`{"y":1}`)}),
			"c-unknown": says(0, call.Reply{Failed: true, Description: pxp.UnknownModule + ": lamp"}),
			"d-invalid": says(0, call.Reply{Failed: true, Description: pxp.InvalidInput + " x: field y"}),
			"e-refused": says(0, call.Reply{Failed: true, Description: pxp.Refused + ": no"}),
			"f-other":   says(0, call.Reply{Failed: true, Code: 200, Description: "strange"}),
			"g-mute":    mute,
			"h-left": func(n *nodes, node fleet.Certname, _ pxp.Request) error {
				go n.caller.Went(node)
				return nil
			},
			"i-broken":  func(*nodes, fleet.Certname, pxp.Request) error { return fault.New(fault.Invalid, "no such name") },
			"j-offline": nil,
			"k-missing": says(0, call.Reply{Failed: true, Code: 3, Description: "field x: it is missing"}),
		})
		got := n.ask(t.Context(), call.Question{Module: "lamp", Action: "on", Timeout: 5 * time.Second})
		want := []action.Answer{
			{Node: "a-done", Data: jsontext.Value(`{"x":1}`), Millis: 1000},
			{Node: "b-aborted", Code: action.Aborted, Message: "no bulb", Data: jsontext.Value(`{"y":1}`)},
			{Node: "c-unknown", Code: action.UnknownAction, Message: "unknown module: lamp"},
			{Node: "d-invalid", Code: action.InvalidData, Message: "invalid input for x: field y"},
			{Node: "e-refused", Code: action.Aborted, Message: "refused by this node's policy: no"},
			{Node: "f-other", Code: action.Other, Message: "strange"},
			{Node: "g-mute", Code: action.Silent, Message: "it was asked, and no answer came in time"},
			{Node: "h-left", Code: action.Left, Message: "its connection ended before it answered, and it did not come back in time"},
			{Node: "i-broken", Code: action.Other, Message: "it could not be asked: no such name"},
			{Node: "j-offline", Code: action.Offline, Message: "no agent of it is connected"},
			{Node: "k-missing", Code: action.MissingData, Message: "field x: it is missing"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOtherTransactionsAndLateAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept pxp.Request
		n := newNodes(map[fleet.Certname]act{"a": func(n *nodes, node fleet.Certname, r pxp.Request) error {
			kept = r
			go func() {
				for range 2 { // twice, and once by a stranger
					n.caller.Answered(context.Background(), call.Reply{Node: node, Transaction: r.Transaction})
				}
				n.caller.Answered(context.Background(), call.Reply{Node: "stranger", Transaction: r.Transaction})
			}()
			return nil
		}})
		if n.caller.Answered(t.Context(), call.Reply{Node: "a", Transaction: "f0e1"}) {
			t.Error("the answer of a run is one of a call")
		}
		if got := n.ask(t.Context(), call.Question{Timeout: time.Second}); len(got) != 1 || got[0].Code != action.Done {
			t.Errorf("answers %v", got)
		}
		if !n.caller.Answered(t.Context(), call.Reply{Node: "a", Transaction: kept.Transaction}) {
			t.Error("a late answer to a call is none")
		}
	})
}

func TestANodeThatComesBackIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		times := 0
		n := newNodes(map[fleet.Certname]act{"a": func(n *nodes, node fleet.Certname, r pxp.Request) error {
			if times++; times == 1 {
				go func() {
					<-time.After(time.Second)
					n.caller.Went(node)
					<-time.After(time.Second)
					n.caller.Came(node)
				}()
				return nil
			}
			return says(time.Second, call.Reply{Results: jsontext.Value(`1`)})(n, node, r)
		}})
		want := []action.Answer{{Node: "a", Data: jsontext.Value(`1`), Millis: 3000}}
		if diff := cmp.Diff(want, n.ask(t.Context(), call.Question{Timeout: 10 * time.Second})); diff != "" || times != 2 {
			t.Errorf("asked %d times: %s", times, diff)
		}
	})
}

// A node that is back before anybody saw that it had left is asked again, too: its first connection may have taken the question with it.
func TestANodeThatWasNeverSeenToLeaveIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		times := 0
		n := newNodes(map[fleet.Certname]act{"a": func(n *nodes, node fleet.Certname, r pxp.Request) error {
			if times++; times == 1 {
				go func() {
					<-time.After(time.Second)
					n.caller.Came(node)
				}()
				return nil
			}
			return says(time.Second, call.Reply{})(n, node, r)
		}})
		want := []action.Answer{{Node: "a", Millis: 2000}}
		if diff := cmp.Diff(want, n.ask(t.Context(), call.Question{Timeout: 10 * time.Second})); diff != "" || times != 2 {
			t.Errorf("asked %d times: %s", times, diff)
		}
	})
}

func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		second := says(time.Second, call.Reply{})
		n := newNodes(map[fleet.Certname]act{"a": second, "b": second, "c": second, "d": mute, "e": second})
		n.ask(t.Context(), call.Question{Timeout: 4 * time.Second, Batch: 2, Sleep: 10 * time.Second})
		want := map[fleet.Certname][]time.Duration{"a": {0}, "b": {0}, "c": {11 * time.Second}, "d": {11 * time.Second}, "e": {25 * time.Second}}
		if diff := cmp.Diff(want, n.asked); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACallThatIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(map[fleet.Certname]act{"a": mute, "b": mute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		want := []action.Answer{
			{Node: "a", Code: action.Silent, Message: "the call ended before its answer came"},
			{Node: "b", Code: action.Unasked, Message: "the call ended before its turn"},
		}
		if diff := cmp.Diff(want, n.ask(ctx, call.Question{Timeout: time.Minute, Batch: 1})); diff != "" {
			t.Error(diff)
		}
	})
}

func TestABusySenderIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		times := 0
		n := newNodes(map[fleet.Certname]act{"a": func(n *nodes, node fleet.Certname, r pxp.Request) error {
			if times++; times < 5 {
				return fault.New(fault.Unavailable, "too much")
			}
			return says(0, call.Reply{})(n, node, r)
		}})
		if got := n.ask(t.Context(), call.Question{Timeout: time.Second}); got[0].Code != action.Done || times != 5 {
			t.Errorf("%v after %d times", got, times)
		}
	})
}

func TestAnswersTakeBoundedRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := call.Reply{Results: jsontext.Value(`"` + strings.Repeat("x", call.AnswerBytes/2-2) + `"`)}
		n := newNodes(map[fleet.Certname]act{"a": says(0, large), "b": says(0, large), "c": says(0, large), "d": says(0, large)})
		largest, now := 0, 0
		n.act["e"] = says(0, call.Reply{Results: jsontext.Value(strings.Repeat("1", call.AnswerBytes+1))})
		var tooLarge action.Answer
		n.caller.Ask(t.Context(), call.Question{Nodes: []fleet.Certname{"a", "b", "c", "d", "e"}, Timeout: time.Minute}, func(some []action.Answer) {
			for _, a := range some {
				now += len(a.Data)
				if a.Node == "e" {
					tooLarge = a
				}
			}
			largest = max(largest, now)
			<-time.After(time.Second) // a slow reader
			now = 0
		})
		if tooLarge.Code != action.Other || tooLarge.Message != "its answer is too large" {
			t.Errorf("e: %v", tooLarge.Message)
		}
		if largest > call.AnswerBytes {
			t.Errorf("%d bytes at a time", largest)
		}
	})
}

// Answers that come at the same time are told together, without one of them waiting for long; what is told together is bounded.
func TestAnswersAreToldTogether(t *testing.T) {
	t.Parallel()
	const large = 100 << 10
	for text, most := range map[string]int{`"on"`: 5, `"` + strings.Repeat("x", large-2) + `"`: 100} {
		synctest.Test(t, func(t *testing.T) {
			acts, q := map[fleet.Certname]act{}, call.Question{Timeout: time.Minute}
			for i := range 200 {
				node := fleet.Certname(fmt.Sprintf("n%03d", i))
				acts[node], q.Nodes = says(time.Second, call.Reply{Results: jsontext.Value(text)}), append(q.Nodes, node)
			}
			began, times, told := time.Now(), 0, map[fleet.Certname]bool{}
			newNodes(acts).caller.Ask(t.Context(), q, func(some []action.Answer) {
				bytes := 0
				for _, a := range some {
					told[a.Node] = true
					bytes += len(a.Data)
				}
				if times++; bytes > 4*large {
					t.Errorf("%d bytes are told together", bytes)
				}
			})
			if took := time.Since(began); len(told) != 200 || times > most || took > time.Second+10*time.Millisecond {
				t.Errorf("%d nodes were told in %d parts, after %s", len(told), times, took)
			}
		})
	}
}

// TestEachNodeIsToldOnce draws calls with nodes that answer, are mute, leave, come back and answer twice, at random times.
func TestEachNodeIsToldOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(1, 30).Draw(rt, "nodes")
		batch := rapid.IntRange(0, 10).Draw(rt, "batch")
		limit := time.Duration(rapid.IntRange(1, 10).Draw(rt, "timeout")) * time.Second
		acts := map[fleet.Certname]act{}
		certain := map[fleet.Certname]bool{} // that answer well in time
		for i := range count {
			node := fleet.Certname(fmt.Sprintf("n%02d", i))
			delay := time.Duration(rapid.IntRange(0, 15_000).Draw(rt, "delay")) * time.Millisecond
			switch rapid.SampledFrom([]string{"says", "twice", "mute", "offline", "blinks"}).Draw(rt, "kind") {
			case "says":
				acts[node], certain[node] = says(delay, call.Reply{}), delay < limit
			case "twice":
				acts[node] = func(n *nodes, node fleet.Certname, r pxp.Request) error {
					_ = says(delay, call.Reply{})(n, node, r)
					return says(delay/2, call.Reply{})(n, node, r)
				}
				certain[node] = delay/2 < limit
			case "mute":
				acts[node] = mute
			case "offline":
				acts[node] = nil
			case "blinks":
				acts[node] = func(n *nodes, node fleet.Certname, r pxp.Request) error {
					go func() {
						n.caller.Went(node)
						<-time.After(delay)
						n.caller.Came(node)
					}()
					return says(delay/2, call.Reply{})(n, node, r)
				}
			}
		}
		synctest.Test(t, func(t *testing.T) {
			n := newNodes(acts)
			answers := n.ask(t.Context(), call.Question{Timeout: limit, Batch: batch})
			told := map[fleet.Certname]action.Code{}
			for _, a := range answers {
				if _, twice := told[a.Node]; twice {
					rt.Errorf("%s is told twice", a.Node)
				}
				told[a.Node] = a.Code
			}
			if len(told) != count {
				rt.Errorf("%d of %d nodes are told", len(told), count)
			}
			for node, sure := range certain {
				if sure && told[node] != action.Done {
					rt.Errorf("%s answered in time and is told as %s", node, told[node])
				}
			}
			<-time.After(time.Hour) // late answers find no call
		})
	})
}
