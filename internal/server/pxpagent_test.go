package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// TestJobsOfPxpAgent orders again what pxp-agent was ordered when testdata's tapes were recorded, and
// answers with what it answered. The orders must be the same as then, and the runs end as they did: a
// command that fails, a task, a script, a file, a Puppet run, output that is too large and output that is no
// text, an agent that is killed while it works and asked afterwards, and one that is told to
// stop, which it cannot.
func TestJobsOfPxpAgent(t *testing.T) {
	t.Parallel()
	want := []string{
		"failed: exit code 3", "succeeded: exit code 0", "succeeded: exit code 0", "succeeded: exit code 0", "succeeded: Puppet ran: 1 would change",
		"errored: Message size: 950096 exceeded max-message-size 900000", "errored: The task executed for the non blocking 'command run' request",
		"succeeded: exit code 0", "killed: killed by ann; its agent cannot stop it: unknown module",
	}
	for tape, version := range map[string]wire.Version{"pxp-agent-jobs-1.tape": wire.V1, "pxp-agent-jobs-2.tape": wire.V2} {
		t.Run(tape, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + tape)
			if err != nil {
				t.Fatal(err)
			}
			p := &player{
				orderer: newOrderer(t, io.Discard, func(c *settings.Config) { c.JobPollInterval = 100 * time.Millisecond }), version: version, now: map[string]string{},
			}
			for line := range strings.Lines(string(text)) {
				if !strings.HasPrefix(line, "#") {
					p.play(strings.TrimSpace(line))
				}
			}
			var got []string
			for i, id := range p.ordered {
				_, runs := p.until(id, ended)
				state := fmt.Sprintf("%s: %s", runs[0].State, runs[0].Reason)
				if got = append(got, state); i >= len(want) || !strings.HasPrefix(state, want[i]) {
					t.Errorf("job %d ended as %q", i+1, state)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d jobs were ordered, want %d", len(got), len(want))
			}
		})
	}
}

// player is an agent that says what is on tape, and a user who orders what is on tape.
type player struct {
	*orderer
	version wire.Version
	session *broker.Session
	line    *line
	ordered []int64
	now     map[string]string // transactions on tape, and what they are called now
}

func (p *player) play(line string) {
	p.t.Helper()
	_, rest, _ := strings.Cut(line, " ")
	act, what, _ := strings.Cut(rest, " ")
	switch act {
	case "+":
		p.connect()
	case "<":
		p.hear(p.decode(what))
	case ">":
		p.say(p.decode(what))
	case "-":
		p.session.Leave(broker.Farewell{Code: 1006})
	default:
		p.t.Fatalf("what is %q?", line)
	}
}

func (p *player) connect() {
	p.t.Helper()
	p.line = &line{woken: make(chan struct{}, 1), gone: make(chan struct{})}
	var err error
	p.session, err = p.broker.Join(broker.Presence{
		URI: agentOf("agent.example.test"), Certname: "agent.example.test", Version: p.version, Agent: "WebSocket++/0.8.2", Remote: "192.0.2.1:1",
	}, false, p.line)
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) decode(quoted string) wire.Message {
	p.t.Helper()
	frame, err := strconv.Unquote(quoted)
	if err != nil {
		p.t.Fatal(err)
	}
	m, err := p.version.Decode([]byte(frame))
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// hear expects a message of the server that is as the one on tape, and gives the server its reason
// to send it.
func (p *player) hear(m wire.Message) {
	p.t.Helper()
	if m.Type == wire.AssociateResponse { // it answers what was said just now
		p.next(func(got wire.Message) bool { return got.Type == m.Type })
		return
	}
	asked, err := pxp.ParseRequest(m.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	switch {
	case m.Type == wire.NonBlockingRequest:
		p.ordered = append(p.ordered, p.order(p.specOf(asked)).ID)
	case asked.Module == pxp.Transaction:
		if _, err := p.jobs.Stop(p.t.Context(), admin(), p.ordered[len(p.ordered)-1], true); err != nil {
			p.t.Fatal(err)
		}
	}
	about, _, _ := strings.Cut(asked.Transaction, "_")
	if about == asked.Transaction {
		about = "" // it is no question
	}
	got := p.next(func(got wire.Message) bool {
		r, err := pxp.ParseRequest(got.Data)
		return err == nil && got.Type == m.Type && r.Module == asked.Module && (about == "" || bytes.Contains(r.Params, []byte(p.now[about])))
	})
	r, err := pxp.ParseRequest(got.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	p.now[asked.Transaction] = r.Transaction
	if diff := cmp.Diff(p.plain(m.Data), p.plain(got.Data)); diff != "" {
		p.t.Errorf("the order (-tape +now):\n%s", diff)
	}
}

// next takes the next message that fits: questions may come more often than when the tape was made.
func (p *player) next(fits func(wire.Message) bool) wire.Message {
	p.t.Helper()
	limit := time.After(time.Minute)
	for {
		for m, ok := p.session.Next(); ok; m, ok = p.session.Next() {
			if fits(m) {
				return m
			}
		}
		select {
		case <-p.line.woken:
		case <-limit:
			p.t.Fatal("the server does not say what it said when the tape was made")
		}
	}
}

// plain is data without what differs from one time to the next.
func (p *player) plain(data []byte) any {
	p.t.Helper()
	for then, now := range p.now {
		data = bytes.ReplaceAll(data, []byte(`"`+then+`"`), []byte(`"`+now+`"`))
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		p.t.Fatal(err)
	}
	if params, ok := v["params"].(map[string]any); ok {
		delete(params, "job")
		delete(params, "reason")
	}
	return v
}

// say says what the agent said, of the transactions of now.
func (p *player) say(m wire.Message) {
	p.t.Helper()
	m.Sender = agentOf("agent.example.test")
	for then, now := range p.now {
		m.Data = bytes.ReplaceAll(m.Data, []byte(then+`"`), []byte(now+`"`))
	}
	payload, err := p.version.Append(nil, m)
	if err != nil {
		p.t.Fatal(err)
	}
	p.session.Receive(p.t.Context(), payload, p.version.Binary())
}

// specOf is what a user ordered.
func (p *player) specOf(r pxp.Request) job.Spec {
	p.t.Helper()
	spec := job.Spec{Targets: job.Targets{Nodes: []fleet.Certname{"agent.example.test"}}}
	fill := func(params any) {
		if err := json.Unmarshal(r.Params, params); err != nil {
			p.t.Fatal(err)
		}
	}
	switch r.Module {
	case pxp.Command:
		var params pxp.CommandParams
		fill(&params)
		spec.Kind, spec.Command = job.Command, &job.CommandSpec{Command: params.Command}
	case pxp.Task:
		var params pxp.TaskParams
		fill(&params)
		f := params.Files[0]
		spec.Kind, spec.Task = job.Task, &job.TaskSpec{
			Name: params.Task, Files: []job.FileRef{{Name: f.Filename, Digest: fleet.Digest(f.SHA256), Bytes: f.Bytes}}, Metadata: params.Metadata,
			Parameters: json.RawMessage(params.Input),
		}
	case pxp.Script:
		var params pxp.ScriptParams
		fill(&params)
		f := params.Script
		spec.Kind = job.Script
		spec.Script = &job.ScriptSpec{Script: job.FileRef{Name: f.Filename, Digest: fleet.Digest(f.SHA256), Bytes: f.Bytes}, Arguments: params.Arguments}
	case pxp.File:
		var params pxp.FileParams
		fill(&params)
		f := params.Files[0]
		spec.Kind = job.File
		spec.File = &job.FileSpec{
			Entries: []job.FileEntry{{Kind: f.Kind, Destination: f.Destination, File: job.FileRef{Name: path.Base(f.URI.Path), Digest: fleet.Digest(f.SHA256)}}},
		}
	case pxp.Puppet:
		var params pxp.PuppetParams
		fill(&params)
		spec.Kind, spec.Puppet = job.Puppet, &job.PuppetSpec{Noop: slices.Contains(params.Flags, "--noop")}
	}
	return spec
}
