package modules_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	agentmodules "github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// choriaMain lets this program do what the agent's binary is told to do for Choria's contract.
const choriaMain = "TEST_CHORIA_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(choriaMain) != "" {
		if err := agentmodules.Main(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// nowhere is a spool that keeps nothing, and a runner that runs nothing: whoever uses them ends the test.
type nowhere struct {
	orders.Spool
	orders.Runner
}

// request asks an engine, and returns what it says last: results, or code and reason.
func (n node) request(spool orders.Spool, runner orders.Runner, kind string, m orders.Module, action, params string) string {
	n.t.Helper()
	said := make(chan wire.Message, 9)
	e := orders.New(orders.Config{Spool: spool, Runner: runner, Modules: []orders.Module{m}, Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	e.Connected(func(m wire.Message) error { said <- m; return nil })
	e.Handle(n.t.Context(), wire.Message{ID: uuid.NewString(), Type: kind, Sender: "pcp:///server", Data: pxp.Data(pxp.Request{
		Transaction: "0b", NotifyOutcome: true, Module: m.Name, Action: action, Params: jsontext.Value(params),
	})})
	for {
		select {
		case m := <-said:
			var data struct {
				Description string         `json:"description"`
				Code        int            `json:"code"`
				Results     jsontext.Value `json:"results"`
			}
			if m.Type == wire.ProvisionalResponse {
				continue
			}
			if err := json.Unmarshal(m.Data, &data); err != nil {
				n.t.Fatal(err)
			}
			if m.Type == wire.RPCError {
				return strings.TrimSuffix(fmt.Sprintf("%d %s %s", data.Code, data.Description, data.Results), " null")
			}
			return string(data.Results)
		case <-n.t.Context().Done():
			n.t.Fatal("no answer")
		}
	}
}

// A question is answered by the module's program, and nothing of it is kept; what is said of failures is what is said of an order's.
func TestQuestionsToAModule(t *testing.T) {
	t.Parallel()
	const task = "The task executed for the blocking 'band play' request (transaction 0b) "
	for body, want := range map[string]string{
		`cat > /dev/null; echo '{"played":true}'`:                  `{"played":true}`,
		`grep -q '"input":{"tune":"x"}' && echo '{"played":true}'`: `{"played":true}`,
		`echo '{"played":1}'`:                                      "0 " + task + "returned invalid results on stdout: {\"played\":1}\n - stderr: (empty)",
		`:`:                                                        "0 " + task + "returned no results on stdout - stderr: (empty)",
		`echo {`:                                                   "0 " + task + "returned invalid JSON on stdout - stderr: (empty)",
		`printf '\377'`:                                            "0 " + task + "returned invalid UTF-8 on stdout",
		`echo no breath >&2; echo '{"left":1}'; exit 3`: `1 no breath {"left":1}`,
	} {
		n := newNode(t)
		n.module("band",
			`[ $1 != metadata ] || { `+
				prints(strings.Replace(reading(goodMetadata), `"configuration":{"type":"object","properties":{"volume":{"type":"integer"}},"required":["volume"]},`, "",
					1))+"\nexit; }\n"+body)
		modules, problems := n.load()
		if len(modules) != 1 {
			t.Fatal(problems)
		}
		if got := n.request(nowhere{}, nowhere{}, wire.BlockingRequest, modules[0], "play", `{"tune":"x"}`); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// reading marks the action of a description as one that only reads.
func reading(metadata string) string {
	return strings.NewReplacer(`"name":"play",`, `"name":"play","read_only":true,`, `"action": "sing",`, `"action": "sing", "read_only": true,`).Replace(metadata)
}

// What is no question is an order, whoever only reads.
func TestAReadingActionIsOrdered(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.module("band", prints(reading(goodMetadata)))
	play := n.play()
	var m machine.Machine
	spool, runner := m.Boot()
	got := n.request(spool, runner, wire.NonBlockingRequest, orders.Module{Name: "band", Actions: map[string]orders.Action{"play": play}}, "play", `{"tune":"x"}`)
	if !strings.HasPrefix(got, "0 The task executed for the non blocking 'band play' request (transaction 0b) returned") || len(m.Started()) != 1 {
		t.Errorf("%s; started: %v", got, m.Started())
	}
}

// A program that does not end is ended with the time of its action, or with the agent; its files go with it.
func TestAQuestionThatIsNotAnswered(t *testing.T) {
	n := newNode(t)
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	t.Setenv(choriaMain, "yes")
	n.write(filepath.Join(n.dir, "choir.json"), reading(choir), 0o600)
	n.module("choir", activated(`[ "$(grep -c endless "$1")" = 0 ] || { echo > `+n.cfg+`/begun; sleep 600; }; echo '{"data":{"sung":"la"}}' > "$2"; echo loud`))
	cfg := n.config()
	cfg.Program = []string{os.Args[0]}
	m, err := agentmodules.LoadFile(t.Context(), cfg, filepath.Join(n.dir, "choir"))
	if err != nil {
		t.Fatal(err)
	}
	if got := n.request(nowhere{}, nowhere{}, wire.BlockingRequest, m, "sing", `{"song":"x"}`); got != `{"sung":"la","voices":4}` {
		t.Error(got)
	}
	if !bytes.Contains(n.log.Bytes(), []byte("text=loud")) {
		t.Errorf("what it printed is not logged: %s", n.log)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := m.Actions["sing"].Read(ctx, orders.Order{Transaction: "0c", Params: jsontext.Value(`{"song":"endless"}`)})
		ended <- err
	}()
	n.appears(filepath.Join(n.cfg, "begun"))
	cancel(os.ErrDeadlineExceeded)
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// appears waits for a file.
func (n node) appears(path string) {
	n.t.Helper()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-n.t.Context().Done():
			n.t.Fatalf("%s does not appear", path)
		}
	}
}
