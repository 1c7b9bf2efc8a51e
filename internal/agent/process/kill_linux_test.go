package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/process"
	"github.com/tutti-project/tutti/internal/agent/spool"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// beAgent is an agent whose connection is standard input and output: a message a line.
func beAgent(ctx context.Context, dir string) error {
	s, err := spool.Open(dir, quiet)
	if err != nil {
		return err
	}
	runner := process.New(process.Config{Watcher: []string{os.Args[0], "watch"}, Grace: time.Second})
	e := orders.New(orders.Config{Spool: s, Runner: runner, Log: quiet, Modules: orders.Modules(orders.Node{OS: "linux"})})
	if err := e.Start(ctx); err != nil {
		return err
	}
	defer e.Close()
	e.Connected(func(m wire.Message) error {
		line, err := wire.V2.Append(nil, m)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(append(line, '\n'))
		return err
	})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		m, err := wire.V2.Decode(lines.Bytes())
		if err != nil {
			return err
		}
		e.Handle(ctx, m)
	}
	return lines.Err()
}

// patience bounds how long an agent of a test lives.
const patience = 2 * time.Minute

// agent is a real process with a spool.
type agent struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startAgent(t *testing.T, dir string) *agent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience) // who waits for what is never said hears that the agent has ended
	t.Cleanup(cancel)
	a := &agent{t: t, cmd: exec.CommandContext(ctx, os.Args[0], "agent", dir)}
	a.cmd.Stderr = os.Stderr
	var errs [3]error
	a.in, errs[0] = a.cmd.StdinPipe()
	out, err := a.cmd.StdoutPipe()
	a.out, errs[1] = bufio.NewScanner(out), err
	errs[2] = a.cmd.Start()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.in.Close()
		_ = a.cmd.Wait()
	})
	return a
}

// kill is kill -9.
func (a *agent) kill() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	_ = a.cmd.Wait()
}

// killHearing is kill -9, and hears to its end what was said before: what the agent has sent whole it does not send again.
func (a *agent) killHearing(outcomes map[string]map[string]bool) {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	for a.out.Scan() {
		if said, err := heard(a.out.Bytes()); err == nil { // else it was killed in the middle of it
			note(outcomes, said)
		}
	}
	_ = a.cmd.Wait()
}

func (a *agent) tell(kind string, data any) {
	a.t.Helper()
	line, err := wire.V2.Append(nil, wire.Message{ID: uuid.NewString(), Type: kind, Sender: wire.Broker, Data: pxp.Data(data)})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.in.Write(append(line, '\n')); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) order(transaction, command string) {
	a.t.Helper()
	a.tell(wire.NonBlockingRequest, pxp.Request{
		Transaction: transaction, Module: pxp.Command, Action: pxp.Run, NotifyOutcome: true, Params: pxp.Data(pxp.CommandParams{Command: command}),
	})
}

// hear is the next message.
func (a *agent) hear() string {
	a.t.Helper()
	if !a.out.Scan() {
		a.t.Fatal("the agent says nothing more: ", a.out.Err())
	}
	said, err := heard(a.out.Bytes())
	if err != nil {
		a.t.Fatal(err)
	}
	return said
}

// heard is a message in short.
func heard(line []byte) (string, error) {
	m, err := wire.V2.Decode(line)
	if err != nil {
		return "", err
	}
	var data struct {
		Transaction string      `json:"transaction_id"`
		Results     pxp.Outcome `json:"results"`
		Description string      `json:"description"`
	}
	if m.Type == wire.ProvisionalResponse {
		return "provisional", nil
	}
	err = json.Unmarshal(m.Data, &data)
	return strings.TrimSpace(fmt.Sprintf("%s %d %s%s", data.Transaction, data.Results.ExitCode, data.Results.Stdout, data.Description)), err
}

func (a *agent) hears(want ...string) {
	a.t.Helper()
	var got []string
	for range want {
		got = append(got, a.hear())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		a.t.Errorf("the agent said (-want +got):\n%s", diff)
	}
}

// hearsNothing checks that nothing was said before a ping is answered.
func (a *agent) hearsNothing() {
	a.t.Helper()
	a.tell(wire.BlockingRequest, pxp.Request{Transaction: "ping", Module: pxp.Ping, Action: pxp.Ping})
	a.hears("ping 0")
}

// An agent is killed while a program runs: the program goes on, the next agent
// adopts it, and there is one execution and one outcome.
func TestKilledAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun, goOn := filepath.Join(dir, "begun"), filepath.Join(dir, "go-on")
	command := "echo $$ >> " + begun + "; until test -e " + goOn + "; do sleep 0.05; done; echo done; exit 4"
	first := startAgent(t, filepath.Join(dir, "spool"))
	first.order("t1", command)
	first.hears("provisional")
	program := waitForNumber(t, begun)
	first.kill()

	second := startAgent(t, filepath.Join(dir, "spool"))
	second.order("t1", command) // the controller missed the answer
	second.hears("provisional")
	second.hearsNothing()
	if gone(program) {
		t.Fatal("the program died with its agent")
	}
	second.kill()
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the program ended", func() bool { return gone(program) })

	third := startAgent(t, filepath.Join(dir, "spool")) // it ended while there was no agent
	third.hears("t1 4 done")
	waitUntil(t, "the delivery is kept", func() bool {
		metadata, err := os.ReadFile(filepath.Join(dir, "spool", "t1", "metadata"))
		return err == nil && strings.Contains(string(metadata), `"delivered":true`)
	})
	third.kill()

	fourth := startAgent(t, filepath.Join(dir, "spool"))
	fourth.order("t1", command)
	fourth.hears("provisional")
	fourth.hearsNothing()
	lines, err := os.ReadFile(begun)
	if err != nil || strings.Count(string(lines), "\n") != 1 {
		t.Errorf("the program began %d times, %v", strings.Count(string(lines), "\n"), err)
	}
}

// Agents are killed at any moment; each order has one execution at most, and one outcome.
func TestAgentKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	counts := filepath.Join(dir, "counts")
	outcomes := map[string]map[string]bool{}
	const orders = 12
	for i := range orders {
		a := startAgent(t, filepath.Join(dir, "spool"))
		id := fmt.Sprint("t", i)
		a.order(id, "echo "+id+" >> "+counts+"; echo "+id)
		if i%3 > 0 {
			note(outcomes, a.hear())
		}
		if i%3 > 1 {
			note(outcomes, a.hear())
		}
		a.killHearing(outcomes)
	}
	last := startAgent(t, filepath.Join(dir, "spool"))
	for i := range orders {
		id := fmt.Sprint("t", i)
		last.order(id, "echo "+id+" >> "+counts+"; echo "+id) // the controller asks again until it knows
		for last.hearInto(outcomes) != "provisional" {
			continue // it is another's outcome
		}
	}
	for len(outcomes) < orders {
		last.hearInto(outcomes)
	}
	last.hearsNothing()
	text, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range orders {
		id := fmt.Sprint("t", i)
		ran := strings.Count(string(text), id+"\n")
		for outcome := range outcomes[id] {
			ok := ran == 1 && outcome == id+" 0 "+id || ran == 0 && strings.Contains(outcome, "will not begin")
			if !ok || len(outcomes[id]) != 1 {
				t.Errorf("%s ran %d times; outcomes %v", id, ran, outcomes[id])
			}
		}
	}
}

func (a *agent) hearInto(outcomes map[string]map[string]bool) string {
	a.t.Helper()
	said := a.hear()
	note(outcomes, said)
	return said
}

// note keeps an outcome by its transaction. Provisional answers are none.
func note(outcomes map[string]map[string]bool, said string) {
	id, _, ok := strings.Cut(said, " ")
	if !ok {
		return
	}
	if outcomes[id] == nil {
		outcomes[id] = map[string]bool{}
	}
	outcomes[id][said] = true
}
