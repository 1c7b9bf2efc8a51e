package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"

	agentpkg "github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/program/programtest"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// daemon is one `tutti agent run`.
type daemon struct {
	program        string // the tutti that it is
	name, dir, log string
	flags          []string
	env            []string // what it runs gets this, too
	mark           string   // in the environment of all that it runs
	cmd            *exec.Cmd
	ended          chan struct{}
}

// joinNode joins a node with a token, as a person would, and describes its agent.
func joinNode(t *testing.T, s *server, name string, flags ...string) *daemon {
	t.Helper()
	var token struct {
		Token       string `json:"token"`
		Fingerprint string `json:"ca_fingerprint"`
	}
	if err := json.Unmarshal([]byte(s.tutti(t, "ca", "token", name, "-o", "json")), &token); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s.tutti(t, "agent", "join", s.url, "--dir", dir, "--certname", name, "--token", token.Token, "--ca-fingerprint", token.Fingerprint)
	d := newDaemon(t, name, dir, flags...)
	d.program = s.program
	return d
}

// withDaemon gives a node with a puppet agent the agent of Tutti, too: it has Puppet's certificate, runs the node's Puppet, and is connected.
func (a *agent) withDaemon(t *testing.T, s *server, flags ...string) *daemon {
	t.Helper()
	if r := a.puppet(t, "ssl", "bootstrap"); r.code != 0 {
		t.Fatalf("puppet ssl bootstrap: %s", r.text())
	}
	dir := t.TempDir()
	s.tutti(t, "agent", "join", s.url, "--dir", dir, "--use-puppet-certificates", "--puppet-ssldir", filepath.Join(a.home, "ssldir"), "--certname", a.name)
	d := newDaemon(t, a.name, dir, append([]string{"--puppet", a.wrapper(t, dir)}, flags...)...)
	d.start(t)
	d.connectedTo(t, "localhost:"+s.port())
	return d
}

func newDaemon(t *testing.T, name, dir string, flags ...string) *daemon {
	t.Helper()
	d := &daemon{program: binary, name: name, dir: dir, log: filepath.Join(dir, "agent.log"), flags: flags, mark: "TEST_AGENT=" + dir}
	t.Cleanup(func() {
		d.killAll()
		text, _ := os.ReadFile(d.log)
		if strings.Contains(string(text), "WARNING: DATA RACE") {
			t.Error("the agent's log holds a data race")
		}
		if t.Failed() {
			t.Logf("the end of %s's log:\n%s", name, tail(string(text), 3000))
		}
	})
	return d
}

// start starts the agent; it is not connected yet.
func (d *daemon) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command(d.program, append([]string{"agent", "run", "--dir", d.dir}, d.flags...)...)
	d.cmd.Env, d.cmd.Stdout, d.cmd.Stderr = append(append(cleanEnv(), d.mark), d.env...), log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, ended := d.cmd, make(chan struct{})
	d.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
}

// gone says whether it has ended.
func (d *daemon) gone() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// kill is kill -9.
func (d *daemon) kill() { d.end(syscall.SIGKILL) }

// killAll also kills what the agent ran: runs of Puppet outlive it, and would write while their directories are removed.
func (d *daemon) killAll() {
	d.kill()
	for left := marked(d.mark); len(left) > 0; left = marked(d.mark) { // one may have started another meanwhile
		for _, p := range left {
			p.kill()
		}
	}
}

func (d *daemon) end(signal syscall.Signal) {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(signal)
	<-d.ended
	d.cmd = nil
}

// status asks the agent; false if it does not answer.
func (d *daemon) status(t *testing.T) (agentpkg.Status, bool) {
	t.Helper()
	r := tuttiWith(t, cleanEnv(), "agent", "status", "--dir", d.dir, "-o", "json")
	var s agentpkg.Status
	if r.code != 0 || json.Unmarshal([]byte(r.out), &s) != nil {
		return s, false
	}
	return s, true
}

// connectedTo waits until the agent is connected to an address.
func (d *daemon) connectedTo(t *testing.T, address string) agentpkg.Status {
	t.Helper()
	var s agentpkg.Status
	eventually(t, patience, d.name+" is connected to "+address, func() bool {
		var ok bool
		s, ok = d.status(t)
		return ok && s.Connection.Connected && s.Connection.Server == address
	})
	return s
}

// connected is how many agents are.
func connected(t *testing.T, s *server) int {
	t.Helper()
	return strings.Count(s.tutti(t, "node", "list", "--connected", "-o", "name"), "\n")
}

// knowsModule waits until so many agents are connected and the server knows a module with an action from them.
func (s *server) knowsModule(t *testing.T, agents int, module, action string) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("the module %s of %d agents", module, agents), func() bool {
		return strings.Contains(s.try(t, "action", "show", module).out, action) && connected(t, s) == agents
	})
}

// uri is the agent's on the wire.
func (d *daemon) uri() wire.URI { return wire.NewURI(d.name, "agent") }

// ask is a blocking request and its response.
func (p *pcp) ask(to wire.URI, module, action, params string) pxp.Response {
	p.t.Helper()
	transaction := newUUID()
	p.send(wire.Message{Type: wire.BlockingRequest, Target: to, Data: pxp.Data(pxp.Request{
		Transaction: transaction, Module: module, Action: action, Params: jsontext.Value(params),
	})})
	return p.response(wire.BlockingResponse, transaction)
}

// order is a non-blocking request; it returns when the agent has it.
func (p *pcp) order(to wire.URI, module, action, params string) (transaction string) {
	p.t.Helper()
	transaction = newUUID()
	p.send(wire.Message{Type: wire.NonBlockingRequest, Target: to, Data: pxp.Data(pxp.Request{
		Transaction: transaction, Module: module, Action: action, Params: jsontext.Value(params), NotifyOutcome: true,
	})})
	m := p.receive()
	if provisional, err := pxp.ParseProvisional(m.Data); m.Type != wire.ProvisionalResponse || err != nil || provisional.Transaction != transaction {
		p.t.Fatalf("received %s %s, want a provisional response of %s: %v", m.Type, m.Data, transaction, err)
	}
	return transaction
}

// response expects one to a transaction.
func (p *pcp) response(messageType, transaction string) pxp.Response {
	p.t.Helper()
	m := p.receive()
	r, err := pxp.ParseResponse(m.Data)
	if m.Type != messageType || err != nil || r.Transaction != transaction {
		p.t.Fatalf("received %s %s, want %s of %s: %v", m.Type, m.Data, messageType, transaction, err)
	}
	return r
}

// A node joins and is ordered; the server restarts, the agent is killed while a command
// runs, and what comes of the command is delivered once.
func TestTheAgentSurvives(t *testing.T) {
	begin(t)
	s := startRaced(t, "--autosign", "list", "--autosign-list", "ctl", "--broker-controllers", "ctl", "--listen", steadyAddress(t))
	address := "localhost:" + s.port()
	d := joinNode(t, s, "web-1")
	d.start(t)
	d.connectedTo(t, address)
	node := enrol(t, s, "ctl")
	ctl := node.pcp(t, "", "/pcp2/controller", wire.V2).associate()
	if diff := cmp.Diff(`{"request_hops":[]}`, string(ctl.ask(d.uri(), "ping", "ping", `{}`).Results)); diff != "" {
		t.Errorf("ping (-want +got):\n%s", diff)
	}
	if text := ctl.response(wire.NonBlockingResponse,
		ctl.order(d.uri(), "command", "run",
			`{"command":"echo one; echo two >&2; exit 3"}`)); string(text.Results) != `{"exitcode":3,"stdout":"one\n","stderr":"two\n"}` {
		t.Errorf("the command gave %s", text.Results)
	}

	if err := s.stop(); err != nil {
		t.Error(err)
	}
	eventually(t, patience, "the agent knows that the server is away", func() bool {
		status, ok := d.status(t)
		return ok && !status.Connection.Connected
	})
	if r := tuttiWith(t, cleanEnv(), "agent", "doctor", "--dir", d.dir); r.code != 8 || !strings.Contains(r.out, "broken   server wss://"+address) {
		t.Errorf("the doctor ended with %d:\n%s", r.code, r.text())
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	d.connectedTo(t, address)

	ctl = node.pcp(t, "", "/pcp2/controller", wire.V2).associate()
	gate, count := filepath.Join(d.dir, "gate"), filepath.Join(d.dir, "count")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	transaction := ctl.order(d.uri(), "command", "run", `{"command":"echo x >> `+count+`; cat `+gate+`"}`)
	eventually(t, patience, "the command runs", func() bool { _, err := os.Stat(count); return err == nil })
	if status, ok := d.status(t); !ok || status.Transactions.Running != 1 {
		t.Errorf("orders while a command runs: %+v", status.Transactions)
	}
	d.kill()
	if err := os.WriteFile(gate, []byte("done"), 0o600); err != nil { // returns when the command reads it
		t.Fatal(err)
	}
	d.start(t)
	if r := ctl.response(wire.NonBlockingResponse, transaction); string(r.Results) != `{"exitcode":0,"stdout":"done"}` {
		t.Errorf("the command gave %s", r.Results)
	}
	if text, _ := os.ReadFile(count); string(text) != "x\n" {
		t.Errorf("the command ran %d times", len(text)/2)
	}
	eventually(t, patience, "both orders are delivered and kept", func() bool {
		status, ok := d.status(t)
		return ok && status.Transactions == agentpkg.Transactions{Kept: 2}
	})
	if again := tuttiWith(t, cleanEnv(), "agent", "run", "--dir", d.dir); again.code != 5 || !strings.Contains(again.err, "another agent") {
		t.Errorf("a second agent ended with %d: %s", again.code, again.err)
	}
	d.end(syscall.SIGTERM)
	s.logged(t, "uri=pcp://web-1/agent", "agent=tutti-agent/")
}

// Of two servers with one CA the first one is preferred: without it the agent goes to
// the second, and back when it can.
func TestTheAgentFailsOverAndReturns(t *testing.T) {
	begin(t)
	first := newServer(t.TempDir(), "--autosign", "all", "--listen", steadyAddress(t))
	first.showLog(t)
	if err := first.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.stop() })
	d := joinNode(t, first, "web-1", "--return-after", "500ms")
	one := "localhost:" + first.port()
	if err := first.stop(); err != nil { // a second server with the same CA
		t.Fatal(err)
	}
	second := newServer(t.TempDir(), "--autosign", "all", "--listen", steadyAddress(t))
	second.showLog(t)
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", first.data, second.data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := second.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.stop() })
	two := "localhost:" + second.port()
	d.flags = append(d.flags, "--servers", "https://"+one, "--servers", "https://"+two)
	d.start(t)
	d.connectedTo(t, two) // the first one is not there yet
	if err := first.start(); err != nil {
		t.Fatal(err)
	}
	d.connectedTo(t, one)
	if text := second.tutti(t, "ca", "list", "-o", "name"); !strings.Contains(text, "web-1") {
		t.Errorf("the second server has another CA:\n%s", text)
	}
	if err := first.crash(); err != nil {
		t.Error(err)
	}
	status := d.connectedTo(t, two)
	if status.Connection.Lost != 1 { // moving back was no loss
		t.Errorf("connection: %+v", status.Connection)
	}
}

// A node with a puppet agent needs no certificate of its own, and does Puppet runs.
func TestTheAgentWithPuppetsCertificate(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all", "--broker-controllers", "ctl")
	s.deploy(t, "production")
	a := newAgent(t, s, "web-1", "story=basic")
	d := a.withDaemon(t, s)
	ctl := enrol(t, s, "ctl").pcp(t, "", "/pcp2/controller", wire.V2).associate()
	transaction := ctl.order(d.uri(), "pxp-module-puppet", "run", `{"env":[],"flags":["--onetime","--no-daemonize"]}`)
	response := ctl.response(wire.NonBlockingResponse, transaction)
	var results pxp.PuppetResults
	if err := json.Unmarshal(response.Results, &results); err != nil || results.Status != "changed" || results.Error != "" {
		t.Fatalf("the Puppet run gave %s, %v", response.Results, err)
	}
	if uuid := a.lastReport(t).TransactionUUID; uuid != results.TransactionUUID {
		t.Errorf("the run is %s, the last report of %s", results.TransactionUUID, uuid)
	}
	status, ok := d.status(t)
	if !ok || status.LastPuppetRun == nil || status.LastPuppetRun.Transaction != transaction || status.LastPuppetRun.Status != "success" {
		t.Errorf("the last Puppet run is %+v", status.LastPuppetRun)
	}
}

// wrapper writes a puppet that knows the directories of this node.
func (a *agent) wrapper(t *testing.T, dir string) string {
	t.Helper()
	puppet := filepath.Join(dir, "puppet")
	script := "#!/bin/sh\n"
	for _, entry := range a.env {
		if options, ok := strings.CutPrefix(entry, "RUBYOPT="); ok { // beside those that it gets
			script += `export RUBYOPT="$RUBYOPT ` + options + "\"\n"
			continue
		}
		script += "export " + shellQuoted(entry) + "\n"
	}
	return programtest.Write(t, puppet, script+a.exec())
}

// shellQuoted is a word for sh.
func shellQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// The agent and the commands that ask a server run wherever nodes do: all that they are made of is right for those systems. It is read,
// not compiled, which would take ten times as long.
func TestTheAgentBuildsElsewhere(t *testing.T) {
	begin(t, 60)
	for _, system := range []string{"darwin/arm64", "windows/amd64"} {
		os, arch, _ := strings.Cut(system, "/")
		config := &packages.Config{
			Context: t.Context(), Mode: packages.LoadAllSyntax,
			Env: append((&exec.Cmd{}).Environ(), "CGO_ENABLED=0", "GOOS="+os, "GOARCH="+arch),
		}
		read, err := packages.Load(config, "../internal/cli", "../internal/agent") // all but main
		if err != nil {
			t.Fatal(err)
		}
		for p := range packages.Postorder(read) {
			for _, mistake := range p.Errors {
				t.Errorf("%s: %v", system, mistake)
			}
		}
	}
}
