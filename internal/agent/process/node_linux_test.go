package process_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	agentfiles "github.com/tutti-project/tutti/internal/agent/files"
	"github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/process"
	"github.com/tutti-project/tutti/internal/agent/spool"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// whole is a node of real parts: a spool on the disk, real programs, files from a real server.
type whole struct {
	t      *testing.T
	dir    string
	engine *orders.Engine
	server *httptest.Server
	mu     sync.Mutex
	files  map[string]string
	said   chan wire.Message
	log    lockedText // of the modules
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	n := &whole{t: t, dir: t.TempDir(), files: map[string]string{}, said: make(chan wire.Message, 100)}
	n.server = httptest.NewTLSServer(http.HandlerFunc(n.serve))
	t.Cleanup(n.server.Close)
	s, err := spool.Open(n.path("spool"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	cache := agentfiles.New(agentfiles.Config{Dir: n.path("cache"), Servers: []string{n.server.URL}, Client: n.server.Client(), Log: quiet})
	n.write("modules/band", 0o700, `#!/bin/sh
case $1 in
metadata) echo '{"description":"x","actions":[{"name":"play","input":{"type":"object","required":["tune"]},"results":{"type":"object","required":["played"]}}]}';;
play) sed 's/.*"tune":\("[^"]*"\).*/{"played":\1}/';;
esac
`)
	n.write("puppet", 0o700, "#!/bin/sh\ncd "+n.dir+`
if [ "$2" = --configprint ]; then echo "lastrunreport = $PWD/report.yaml"; exit 0; fi
echo 'status: unchanged' > report.yaml
echo "transaction_uuid: 11111111-0000-4000-8000-000000000000" >> report.yaml
`)
	n.write("modules/choir.json", 0o600,
		`{"metadata":{"description":"x"},"actions":[{"action":"sing","input":{"song":{"type":"string","optional":false}},"output":{"sung":{}}}]}`)
	n.write("modules/choir", 0o700, `#!/bin/sh
case $3 in
*.activation_request) echo '{"activate": true}' > "$2"; exit;;
esac
case $(cat "$1") in
*'"song":"nothing"'*) echo '{"statuscode":1,"statusmsg":"there is no song","data":{"sung":""}}' > "$2";;
*'"song":"forever"'*) trap 'echo "$2" > `+n.path("bowed")+`; exit' TERM; echo "$2" > `+n.path("singing")+`; while :; do sleep 0.1; done;;
*) echo '{"statuscode":0,"data":{"sung":"la la"}}' > "$2"; echo humming; echo coughing >&2;;
esac
`)
	more, problems, err := modules.Load(t.Context(), modules.Config{
		Dir: n.path("modules"), ConfigDir: n.path("modules"), Program: []string{os.Args[0], "choria"}, Activation: time.Minute,
		Log: slog.New(slog.NewTextHandler(&n.log, nil)),
	})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	node := orders.Node{OS: "linux", Shell: process.LoginShell(), Cache: cache, Puppet: n.path("puppet"), PuppetRun: []string{os.Args[0], "puppet"}}
	n.engine = orders.New(orders.Config{Spool: s, Runner: newRunner(nil), Cache: cache, Modules: append(orders.Modules(node), more...), Log: quiet})
	n.engine.Connected(func(m wire.Message) error { n.said <- m; return nil })
	t.Cleanup(func() {
		n.engine.Close()
		_ = s.Close()
	})
	return n
}

func (n *whole) path(name string) string { return filepath.Join(n.dir, name) }

func (n *whole) write(name string, mode os.FileMode, text string) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.path(name)), 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(n.path(name), []byte(text), mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n *whole) serve(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	content, ok := n.files[r.URL.Path]
	n.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(content))
}

// file gives the server a content under its digest.
func (n *whole) file(name, text string) pxp.FileSource {
	sum := sha256.Sum256([]byte(text))
	f := pxp.FileSource{Filename: name, SHA256: hex.EncodeToString(sum[:])}
	f.URI = pxp.Source{Path: "/job-files/v1/" + f.SHA256 + "/" + filepath.Base(name), Params: map[string]string{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.files[f.URI.Path] = text
	return f
}

// order gives an order, and returns what became of it.
func (n *whole) order(module, action string, params any) (kind string, results jsontext.Value) {
	n.t.Helper()
	transaction := uuid.NewString()
	request := pxp.Request{Transaction: transaction, Module: module, Action: action, Params: pxp.Data(params), NotifyOutcome: true}
	n.engine.Handle(n.t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.NonBlockingRequest, Sender: wire.Broker, Data: pxp.Data(request)})
	if m := <-n.said; m.Type != wire.ProvisionalResponse || m.Target != wire.Broker {
		n.t.Fatalf("the first answer is %s: %s", m.Type, m.Data)
	}
	m := <-n.said
	var data struct {
		Results     jsontext.Value `json:"results"`
		Description string         `json:"description"`
	}
	if err := json.Unmarshal(m.Data, &data); err != nil {
		n.t.Fatal(err)
	}
	if m.Type == wire.RPCError {
		return m.Type, jsontext.Value(strings.ReplaceAll(data.Description, transaction, "T"))
	}
	return m.Type, data.Results
}

// succeeds gives an order that has results.
func (n *whole) succeeds(module, action string, params any) pxp.Outcome {
	n.t.Helper()
	kind, results := n.order(module, action, params)
	var o pxp.Outcome
	if kind != wire.NonBlockingResponse {
		n.t.Fatalf("%s: %s", kind, results)
	}
	if err := json.Unmarshal(results, &o); err != nil {
		n.t.Fatal(err)
	}
	return o
}

func TestTaskOnAWholeNode(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	task := n.file("greet.sh", "#!/bin/sh\n. $PT__installdir/lib/files/greeting.sh\nprintf '%s %s %s' \"$greeting\" \"$PT_name\" \"$PT__task\"\ncat >&2\n")
	p := pxp.TaskParams{
		Task: "lib::greet", Input: jsontext.Value(`{"name":"Ann"}`), Files: []pxp.FileSource{task, n.file("lib/files/greeting.sh", "greeting=Hello\n")},
		Metadata: &pxp.TaskMetadata{Files: []string{"lib/files/"}},
	}
	o := n.succeeds("task", "run", p)
	if o.ExitCode != 0 || o.Stdout != "Hello Ann lib::greet" || !strings.HasPrefix(o.Stderr, `{"_installdir":"`+n.path("spool")) {
		t.Errorf("the outcome is %+v", o)
	}
	left, err := filepath.Glob(n.path("spool/*/temp_task_*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestWrongChecksumOnAWholeNode(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	task := n.file("evil.sh", "#!/bin/sh\necho good\n")
	n.files[task.URI.Path] = "#!/bin/sh\ntouch " + n.path("ran") + "\n"
	kind, text := n.order("task", "run", pxp.TaskParams{Task: "x::evil", Input: jsontext.Value(`{}`), Files: []pxp.FileSource{task}})
	want := `Failed to execute the task for the non blocking 'task run' request (transaction T). Error: The downloaded file "evil.sh" has a SHA that differs from the provided SHA`
	if kind != wire.RPCError || string(text) != want {
		t.Errorf("%s: %s", kind, text)
	}
	if _, err := os.Lstat(n.path("ran")); err == nil {
		t.Error("it was run")
	}
}

// Parameters are on no disk, at no time.
func TestSecretsOnAWholeNode(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	secret := rand.Text() // no other test of this machine has it
	task := n.file("look.sh", "#!/bin/sh\ngrep -rl "+secret+" "+n.dir+" ; ps -ww -eo args | grep -c '["+secret[:1]+"]"+secret[1:]+"'\ncat >/dev/null\n")
	o := n.succeeds("task", "run", pxp.TaskParams{Task: "x::look", Input: jsontext.Value(`{"password":"` + secret + `"}`), Files: []pxp.FileSource{task}})
	if cached := filepath.Join(n.dir, "cache", task.SHA256, "look.sh") + "\n0\n"; o.Stdout != cached { // the program itself holds the word
		t.Errorf("the secret is at\n%s", o.Stdout)
	}
}

func TestOtherModulesOnAWholeNode(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	if o := n.succeeds("command", "run", pxp.CommandParams{Command: "echo $((6*7)); exit 3"}); o.ExitCode != 3 || o.Stdout != "42\n" {
		t.Errorf("command: %+v", o)
	}
	script := pxp.ScriptParams{Script: n.file("a.sh", "#!/bin/sh\necho \"$#:$2\"\n"), Arguments: []string{"a", "b c"}}
	if o := n.succeeds("script", "run", script); o.Stdout != "2:b c\n" {
		t.Errorf("script: %+v", o)
	}
	f := n.file("motd", "welcome\n")
	files := pxp.FileParams{Files: []pxp.FileEntry{{Kind: pxp.RegularFile, Destination: n.path("etc/motd"), URI: f.URI, SHA256: f.SHA256}}}
	if o := n.succeeds("file", "download", files); o.Stdout != "downloaded" {
		t.Errorf("file: %+v", o)
	}
	if text, err := os.ReadFile(n.path("etc/motd")); err != nil || string(text) != "welcome\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if kind, results := n.order("band", "play", map[string]string{"tune": "la"}); kind != wire.NonBlockingResponse || string(results) != `{"played":"la"}` {
		t.Errorf("external module: %s %s", kind, results)
	}
	kind, results := n.order("pxp-module-puppet", "run", pxp.PuppetParams{Env: []string{}, Flags: []string{"--noop"}})
	want := `{"time":"unknown","transaction_uuid":"11111111-0000-4000-8000-000000000000","environment":"unknown","status":"unchanged","metrics":{},"exitcode":0,"version":1}`
	if kind != wire.NonBlockingResponse || string(results) != want {
		t.Errorf("puppet: %s %s", kind, results)
	}
	kind, results = n.order("pxp-module-puppet", "run", pxp.PuppetParams{Env: []string{}, Flags: []string{"--server"}})
	if kind != wire.NonBlockingResponse || !strings.Contains(string(results), `"error_type":"invalid_json"`) {
		t.Errorf("a forbidden flag: %s %s", kind, results)
	}
}

// What is in the spool and is no transaction counts as one that is known: it is not run, and
// harms no other.
func TestForeignFileInTheSpool(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	n.write("spool/blocker", 0o600, "") // a file where a transaction would be
	request := pxp.Request{
		Transaction: "blocker", Module: "command", Action: "run", Params: pxp.Data(pxp.CommandParams{Command: "touch " + n.path("ran")}), NotifyOutcome: true,
	}
	n.engine.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.NonBlockingRequest, Sender: wire.Broker, Data: pxp.Data(request)})
	if m := <-n.said; m.Type != wire.ProvisionalResponse {
		t.Errorf("%s: %s", m.Type, m.Data)
	}
	if o := n.succeeds("command", "run", pxp.CommandParams{Command: "echo fine"}); o.Stdout != "fine\n" {
		t.Errorf("the next order: %+v", o)
	}
	if _, err := os.Lstat(n.path("ran")); err == nil {
		t.Error("it was run")
	}
}

// Many programs at a time, each with much output: each has its own, whole.
func TestManyProgramsOnAWholeNode(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	const many, size = 12, 200_000
	for i := range many {
		request := pxp.Request{
			Transaction: fmt.Sprint("t", i), Module: "command", Action: "run", NotifyOutcome: true,
			Params: pxp.Data(pxp.CommandParams{Command: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' %c", size, 'a'+i)}),
		}
		n.engine.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.NonBlockingRequest, Sender: wire.Broker, Data: pxp.Data(request)})
	}
	outcomes := map[string]bool{}
	deadline := time.After(2 * time.Minute)
	for len(outcomes) < many {
		select {
		case m := <-n.said:
			if m.Type == wire.ProvisionalResponse {
				continue
			}
			var data struct {
				Transaction string      `json:"transaction_id"`
				Results     pxp.Outcome `json:"results"`
			}
			if err := json.Unmarshal(m.Data, &data); err != nil {
				t.Fatal(err)
			}
			var i int
			if _, err := fmt.Sscanf(data.Transaction, "t%d", &i); err != nil || data.Results.Stdout != strings.Repeat(string(rune('a'+i)), size) {
				t.Errorf("%s has %d bytes, %v", data.Transaction, len(data.Results.Stdout), err)
			}
			if outcomes[data.Transaction] {
				t.Errorf("%s has two outcomes", data.Transaction)
			}
			outcomes[data.Transaction] = true
		case <-deadline:
			t.Fatalf("only %d outcomes came", len(outcomes))
		}
	}
}

// A program that ignores SIGTERM is killed when its transaction is cancelled, and what
// it wrote before is in the outcome.
func TestDeafProgramOnAWholeNode(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	command := "trap '' TERM; echo begun; touch " + n.path("begun") + "; while :; do sleep 0.1; done"
	request := pxp.Request{Transaction: "deaf", Module: "command", Action: "run", NotifyOutcome: true, Params: pxp.Data(pxp.CommandParams{Command: command})}
	n.engine.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.NonBlockingRequest, Sender: wire.Broker, Data: pxp.Data(request)})
	waitUntil(t, "the program began", func() bool {
		_, err := os.Lstat(n.path("begun"))
		return err == nil
	})
	cancel := pxp.Request{Transaction: "c", Module: "transaction", Action: "cancel", Params: pxp.Data(pxp.CancelParams{Transaction: "deaf", Reason: "lunch"})}
	n.engine.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.BlockingRequest, Sender: wire.Broker, Data: pxp.Data(cancel)})
	for _, want := range []string{
		`{"transaction_id":"deaf"}`,
		`{"transaction_id":"c","results":{"transaction_id":"deaf","status":"running"}}`,
		`{"transaction_id":"deaf","results":{"exitcode":137,"stdout":"begun\n","stderr":"tutti: ended because it was cancelled\ntutti: killed, because it did not end in 500ms\n","ended":"cancelled"}}`,
	} {
		if m := <-n.said; string(m.Data) != want {
			t.Errorf("%s: %s, want %s", m.Type, m.Data, want)
		}
	}
}

func TestOutputThatIsNotTextOnAWholeNode(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	if o := n.succeeds("command", "run", pxp.CommandParams{Command: `printf 'a\377b'`}); o.Stdout != "a\uFFFDb" {
		t.Errorf("on stdout: %+v", o)
	}
	if o := n.succeeds("command", "run", pxp.CommandParams{Command: `printf 'a\377b' >&2`}); o.Stderr != "a\uFFFDb" {
		t.Errorf("on stderr: %+v", o)
	}
}

// lockedText is a text that many write.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A module of Choria's contract, run by the agent's own binary below a watcher.
func TestANodeRunsAnExternalAgentOfChoria(t *testing.T) {
	t.Parallel()
	n := newWhole(t)
	type input struct {
		Song string `json:"song"`
	}
	if kind, results := n.order("choir", "sing", input{"x"}); kind != wire.NonBlockingResponse || string(results) != `{"sung":"la la"}` {
		t.Errorf("%s: %s", kind, results)
	}
	for _, want := range []string{
		`level=INFO msg="module printed" module=choir action=sing text=humming`,
		`level=ERROR msg="module printed on standard error" module=choir action=sing text=coughing`,
	} {
		if log := n.log.String(); strings.Count(log, want) != 1 {
			t.Errorf("the log has not %s once:\n%s", want, log)
		}
	}
	if kind, why := n.order("choir", "sing", input{"nothing"}); kind != wire.RPCError || string(why) != "there is no song" {
		t.Errorf("%s: %s", kind, why)
	}
	transaction := uuid.NewString()
	request := pxp.Request{Transaction: transaction, Module: "choir", Action: "sing", Params: pxp.Data(input{"forever"}), NotifyOutcome: true}
	n.engine.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.NonBlockingRequest, Sender: wire.Broker, Data: pxp.Data(request)})
	reply := n.eventually("singing")
	if place := n.path("spool/" + transaction); !strings.HasPrefix(reply, place+"/choria-") {
		t.Errorf("the reply is to be written to %s, which is not below %s", reply, place)
	}
	stop := pxp.Request{Transaction: uuid.NewString(), Module: pxp.Transaction, Action: pxp.Cancel, Params: pxp.Data(pxp.CancelParams{Transaction: transaction})}
	n.engine.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.BlockingRequest, Sender: wire.Broker, Data: pxp.Data(stop)})
	for m := range n.said {
		if m.Type == wire.RPCError {
			if !strings.Contains(string(m.Data), pxp.Cancelled) {
				t.Errorf("after it was stopped: %s", m.Data)
			}
			break
		}
	}
	if n.eventually("bowed") != reply {
		t.Error("the program had no time to end by itself")
	}
	if _, err := os.Stat(filepath.Dir(reply)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
}

// eventually is the first line of a file, as soon as there is one.
func (n *whole) eventually(name string) string {
	n.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if text, _ := os.ReadFile(n.path(name)); strings.HasSuffix(string(text), "\n") {
			return strings.TrimSpace(string(text))
		}
	}
	n.t.Fatalf("there is no %s", name)
	return ""
}
