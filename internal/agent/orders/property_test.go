package orders_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Whatever is asked, repeated, cancelled, cut off and killed: no transaction runs
// twice, and every one has exactly one outcome once the agent stays connected.
func TestEveryTransactionEndsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		script := drawn(rt)
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = newStory(t, script).tell() })
		if len(wrong) > 0 {
			rt.Fatal(strings.Join(wrong, "\n"))
		}
	})
}

// script is what happens, drawn before it begins.
type script struct {
	download time.Duration
	endings  []machine.Ending
	steps    []step
}

type step struct {
	what        string
	transaction string
	seconds     int
	settle      bool
}

func drawn(t *rapid.T) script {
	return script{
		download: time.Duration(rapid.IntRange(0, 30).Draw(t, "download")) * time.Second,
		endings: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) machine.Ending {
			return machine.Ending{
				After: time.Duration(rapid.SampledFrom([]int{0, 1, 20, 7200}).Draw(t, "runs")) * time.Second,
				Exit:  rapid.IntRange(0, 1).Draw(t, "exit"), Stdout: "{}",
				Vanish: rapid.IntRange(0, 9).Draw(t, "vanishes") == 9,
				Deaf:   rapid.Bool().Draw(t, "deaf"),
			}
		}), 1, 5).Draw(t, "endings"),
		steps: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				what: rapid.SampledFrom([]string{
					"command", "command", "puppet", "script", "file", "cancel", "cut", "connect", "kill", "kill after send", "wait", "reboot", "full", "room",
				}).Draw(t, "what"),
				transaction: fmt.Sprint("t", rapid.IntRange(0, 9).Draw(t, "transaction")),
				seconds:     rapid.IntRange(1, 100).Draw(t, "seconds"),
				settle:      rapid.Bool().Draw(t, "settle"),
			}
		}), 1, 60).Draw(t, "steps"),
	}
}

// story is one random life of a node.
type story struct {
	*node
	script  script
	wrong   []string
	seen    map[string]func() // transactions that the agent got, and how they were ordered
	kills   int               // of the agent
	filled  bool              // the disk was full at times
	killing bool              // at the next outcome, after it was sent
	dead    *orders.Engine    // the one that was killed so
	// what the controller got
	outcomes map[string][]string
	offered  map[string]bool // provisional responses
}

func newStory(t *testing.T, what script) *story {
	t.Helper()
	s := &story{script: what, seen: map[string]func(){}, outcomes: map[string][]string{}, offered: map[string]bool{}}
	s.node = &node{t: t, machine: &machine.Machine{}, cache: &machine.Cache{Delay: what.download}, change: func(c *orders.Config) {
		c.MaxConcurrent, c.MaxWaiting, c.MaxPuppetWaiting, c.MaxRun = 2, 2, 1, time.Hour
	}}
	started := 0
	s.machine.Program = func(string, orders.Command) machine.Ending {
		started++
		return what.endings[started%len(what.endings)]
	}
	return s
}

func (s *story) errorf(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func (s *story) tell() []string {
	s.boot()
	s.listen()
	for _, step := range s.script.steps {
		s.step(step)
		s.read()
		if step.settle {
			synctest.Wait()
		}
	}
	s.mu.Lock()
	s.killing = false
	s.mu.Unlock()
	s.disconnect(false)
	s.machine.Fill(false)
	s.kill(s.machine.Crash)
	pass(24 * time.Hour)
	synctest.Wait()
	s.read()
	s.judge()
	s.engine.Close()
	return s.wrong
}

func (s *story) step(step step) {
	id := step.transaction
	switch step.what {
	case "command":
		s.first(id, func() { s.command(id) })
	case "puppet":
		s.first(id, func() { s.order(id, "pxp-module-puppet", "run", `{"flags":[]}`) })
	case "script":
		s.first(id, func() { s.order(id, "script", "run", `{"script":`+file("a.sh")+`,"arguments":[]}`) })
	case "file":
		s.first(id, func() {
			s.order(id, "file", "download", `{"files":[{"kind":"directory","destination":"/tmp/x"}]}`)
		})
	case "cancel":
		s.ask("c", "transaction", "cancel", `{"transaction_id":"`+id+`"}`)
	case "cut":
		s.disconnect(true)
	case "connect":
		s.disconnect(false)
		s.listen()
	case "kill":
		s.kill(s.machine.Crash)
	case "kill after send":
		s.mu.Lock()
		s.killing = true
		s.mu.Unlock()
	case "wait":
		pass(time.Duration(step.seconds) * time.Second)
	case "reboot":
		s.kill(s.machine.Reboot)
	case "full":
		s.filled = true
		s.machine.Fill(true)
	case "room":
		s.machine.Fill(false)
	}
}

// first orders; a transaction that was ordered before is ordered the same again.
func (s *story) first(id string, order func()) {
	if s.seen[id] == nil {
		s.seen[id] = order
	}
	s.seen[id]()
}

// kill ends the agent in some way, and starts the next one.
func (s *story) kill(end func()) {
	s.kills++
	s.mu.Lock()
	old := s.engine
	s.engine = nil
	s.mu.Unlock()
	end()
	old.Close()
	s.boot()
	s.listen()
}

// listen is connect, with an agent that may be killed when it has just sent an outcome.
func (s *story) listen() {
	engine := s.engine
	engine.Connected(func(m wire.Message) error {
		s.mu.Lock()
		dead := s.dead == engine
		s.mu.Unlock()
		if dead {
			return errors.New("killed")
		}
		if err := s.send(engine, m); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.killing && (m.Type == wire.NonBlockingResponse || m.Type == wire.RPCError) {
			s.killing, s.dead = false, engine
			s.kills++
			s.machine.Crash()
		}
		return nil
	})
}

// read takes what the controller got.
func (s *story) read() {
	s.mu.Lock()
	sent := s.sent
	s.sent = nil
	s.mu.Unlock()
	for _, m := range sent {
		var data pxp.Failure
		if err := json.Unmarshal(m.Data, &data); err != nil {
			s.errorf("%v", err)
		}
		switch m.Type {
		case wire.ProvisionalResponse:
			s.offered[data.Transaction] = true
		case wire.NonBlockingResponse, wire.RPCError:
			s.outcomes[data.Transaction] = append(s.outcomes[data.Transaction], line(m))
		}
	}
}

func (s *story) judge() {
	for id, n := range s.machine.Started() {
		if n != 1 {
			s.errorf("%s was started %d times", id, n)
		}
	}
	for id := range s.seen {
		s.judgeOne(id, s.outcomes[id])
	}
}

func (s *story) judgeOne(id string, got []string) {
	started := s.machine.Started()[id]
	if len(got) == 0 {
		if started > 0 || s.offered[id] {
			s.errorf("%s was begun, and has no outcome", id)
		}
		return // refused while nobody listened: it was not begun, and the controller will ask again
	}
	if s.kills > 0 { // it was not begun then; a copy that came when there was room, to a new process, was
		got = slices.DeleteFunc(got, func(outcome string) bool { return strings.HasSuffix(outcome, "disk is full") })
	}
	if len(got) == 0 {
		return
	}
	if refused := strings.HasSuffix(got[0], "disk is full") && started == 0; !refused && len(got) > 1+s.kills {
		s.errorf("%s: %d outcomes with %d kills", id, len(got), s.kills)
	}
	for _, outcome := range got[1:] {
		// How it ended cannot be kept on a full disk; after a kill it may be told in other words, but ended as badly.
		bothFailed := strings.HasPrefix(outcome, "rpc_error") && strings.HasPrefix(got[0], "rpc_error")
		if outcome != got[0] && (!s.filled || !bothFailed) {
			s.errorf("%s has two outcomes:\n%s\n%s", id, got[0], outcome)
		}
	}
	for _, never := range []string{"too much to do", "will not begin", "had not begun"} {
		if strings.Contains(got[0], never) && started > 0 {
			s.errorf("%s was started, and its outcome is %s", id, got[0])
		}
	}
}
