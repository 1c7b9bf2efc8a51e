package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Tasks with several implementations, as the modules package, service and facts have them, and tasks that need other files, their own
// executable among them, are ordered as when pxp-agent 1.15.25 carried them out: the same names of files under the same addresses.
// An executable under another name is "file requested by implementation not found" to pxp-agent. How the tapes were made:
// docs/pcp-compatibility.md.
func TestTasksOfPxpAgent(t *testing.T) {
	t.Parallel() // see TestAttacksOfAPreview
	for _, version := range []wire.Version{wire.V1, wire.V2} {
		t.Run(fmt.Sprintf("PCP %d", version), func(t *testing.T) {
			begin(t)
			s := theHouse(t)
			s.tutti(t, "code", "deploy", "--no-check", "tasks", "testdata/tasks")
			tape, err := os.ReadFile(fmt.Sprintf("testdata/tasks/pxp-agent-%d.tape", version))
			if err != nil {
				t.Fatal(err)
			}
			p := &taskPlayer{server: s, node: enrol(t, s, fmt.Sprintf("pxp-%d.tasks.test", version)), version: version, now: map[string]string{}}
			for line := range strings.Lines(string(tape)) {
				if !strings.HasPrefix(line, "#") {
					p.play(t, strings.TrimSpace(line))
				}
			}
			for i, want := range []string{
				"package: by: init.rb, status: installed", "package::linux: family: linux, status: installed", "package::shell: family: linux, status: installed",
				"service: by: init.rb, status: stopped", "facts: kernel: Linux", "facts::own: ./bash.sh, ./facts/tasks/bash.sh",
				"facts::all: ./facts/tasks/all.json, ./facts/tasks/bash.sh, ./facts/tasks/init.json, ./facts/tasks/own.json, " +
					"./facts/tasks/powershell.ps1, ./facts/tasks/ruby.rb",
			} {
				task, output, _ := strings.Cut(want, ": ")
				if i >= len(p.jobs) {
					t.Fatalf("%s was not ordered", task)
				}
				contains(t, s.tutti(t, "job", "watch", p.jobs[i].ID), p.node.name+": succeeded\n  "+strings.ReplaceAll(output, ", ", "\n  ")+"\n")
			}
		})
	}
}

// taskPlayer is a pxp-agent that does what is on tape, and a user who orders what is on tape.
type taskPlayer struct {
	server  *server
	node    *node
	version wire.Version
	line    *pcp
	jobs    []api.Job
	now     map[string]string // transactions on tape, and what they are called now
}

func (p *taskPlayer) play(t *testing.T, line string) {
	t.Helper()
	_, rest, _ := strings.Cut(line, " ")
	act, what, _ := strings.Cut(rest, " ")
	switch act {
	case "+":
		path, _, _ := strings.Cut(what, " ")
		if p.line = p.node.pcp(t, "", path, p.version); p.version == wire.V2 {
			p.line.associate() // it is not on tape, and says when the agent is known
		}
	case "<":
		if m := p.decode(t, what); m.Type == wire.AssociateResponse {
			p.line.receive()
		} else {
			p.hear(t, m)
		}
	case ">":
		m := p.decode(t, what)
		m.Sender = p.line.uri
		for then, now := range p.now {
			m.Data = []byte(strings.ReplaceAll(string(m.Data), then, now))
		}
		p.line.send(m)
	case http.MethodGet:
		p.fetch(t, what)
	case "-":
	default:
		t.Fatalf("what is %q?", line)
	}
}

func (p *taskPlayer) decode(t *testing.T, quoted string) wire.Message {
	t.Helper()
	frame, err := strconv.Unquote(quoted)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.version.Decode([]byte(frame))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// hear orders the task that was ordered on tape, and expects that the order is the same.
func (p *taskPlayer) hear(t *testing.T, m wire.Message) {
	t.Helper()
	then, params := taskOf(t, m)
	args := []string{"task", "run", params.Task, "--environment", "tasks", "--targets", p.node.name, "--no-wait", "--yes"}
	var input map[string]string
	if err := json.Unmarshal(params.Input, &input); err != nil {
		t.Fatal(err)
	}
	for name, value := range input {
		args = append(args, name+"="+value)
	}
	p.jobs = append(p.jobs, decode[api.Job](t, p.server, args...))
	got := p.line.receive()
	for got.Type == wire.BlockingRequest { // the server asks how a run stands if it takes long
		got = p.line.receive()
	}
	now, ordered := taskOf(t, got)
	if diff := cmp.Diff(plain(t, params), plain(t, ordered)); diff != "" {
		t.Errorf("the order of %s (-tape +now):\n%s", params.Task, diff)
	}
	p.now[then.Transaction] = now.Transaction
}

// taskOf is the task that is ordered.
func taskOf(t *testing.T, m wire.Message) (pxp.Request, pxp.TaskParams) {
	t.Helper()
	r, err := pxp.ParseRequest(m.Data)
	if err != nil || m.Type != wire.NonBlockingRequest || r.Module != pxp.Task || r.Action != pxp.Run || !r.NotifyOutcome {
		t.Fatalf("%s %s is no order of a task: %v", m.Type, m.Data, err)
	}
	params, err := pxp.ParseTask(r.Params)
	if err != nil {
		t.Fatal(err)
	}
	return r, params
}

func plain(t *testing.T, params pxp.TaskParams) (v any) {
	t.Helper()
	if err := json.Unmarshal(pxp.Data(params), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fetch gets a file as the agent did: PATH STATUS SHA256.
func (p *taskPlayer) fetch(t *testing.T, what string) {
	t.Helper()
	path, want, _ := strings.Cut(what, " ")
	got := p.node.must(t, http.MethodGet, path, "", nil)
	sum := sha256.Sum256([]byte(got.body))
	if is := fmt.Sprintf("%d %s", got.status, hex.EncodeToString(sum[:])); is != want {
		t.Errorf("GET %s: %s, want %s", path, is, want)
	}
}
