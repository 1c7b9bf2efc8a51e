package broker_test

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/wire"
)

// TestRecordedConversations plays what original clients sent to the broker, and expects
// that they would have heard the same again. How the tapes were made: docs/pcp-compatibility.md.
func TestRecordedConversations(t *testing.T) {
	t.Parallel()
	for tape, want := range map[string]replay{
		"ruby-client.tape": {version: wire.V1, heard: 12, ended: 4, names: map[string]wire.URI{
			"agent1": "pcp://agent1/agent", "ctl": "pcp://ctl/controller", "second": "pcp://agent1/agent", "odd": "pcp://agent1/agent",
		}},
		"pxp-agent-1.tape": {version: wire.V1, heard: 22, said: 30, ended: 1, names: map[string]wire.URI{"agent": "pcp://agent2.example.test/agent"}},
		"pxp-agent-2.tape": {version: wire.V2, heard: 21, said: 30, ended: 1, names: map[string]wire.URI{"agent": "pcp://agent1.example.test/agent"}},
	} {
		t.Run(tape, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + tape)
			must(t, err)
			synctest.Test(t, func(t *testing.T) {
				r := &replay{t: t, broker: open(t, nil), names: want.names, version: want.version, peers: map[string]peer{}}
				go func() { _ = r.broker.Run(t.Context()) }()
				lines := bufio.NewScanner(bytes.NewReader(text))
				for lines.Scan() {
					if line := lines.Text(); !strings.HasPrefix(line, "#") {
						r.line(line)
					}
				}
				if r.heard != want.heard || r.said != want.said || r.ended != want.ended {
					t.Errorf("%d messages were heard, %d reached the controller, %d clients ended", r.heard, r.said, r.ended)
				}
			})
		})
	}
}

// theController gave the orders that agents have on tape. It is not on tape itself: what
// it says is what the agents hear, and the other way round. It speaks PCP 2.
const theController = wire.URI("pcp://ctl/controller")

type replay struct {
	t                  *testing.T
	broker             *broker.Broker
	names              map[string]wire.URI
	version            wire.Version
	peers              map[string]peer
	heard, said, ended int
}

func (r *replay) line(line string) {
	r.t.Helper()
	name, rest, _ := strings.Cut(line, " ")
	act, what, _ := strings.Cut(rest, " ")
	p := r.peers[name]
	switch act {
	case "+":
		var err error
		r.peers[name], err = tryJoin(r.broker, r.names[name], r.version)
		must(r.t, err)
		if r.names["ctl"] == "" && r.peers["ctl"].Session == nil {
			r.peers["ctl"] = join(r.t, r.broker, theController)
		}
	case ">":
		p.Receive(r.t.Context(), r.frame(what), r.version.Binary())
		if m := r.decode(r.frame(what)); r.names["ctl"] == "" && m.Target == theController {
			r.said++
			r.compare("ctl", r.peers["ctl"], m)
		}
	case "<":
		r.heard++
		m := r.decode(r.frame(what))
		if r.names["ctl"] == "" && m.Sender == theController {
			r.peers["ctl"].says(r.t, m)
		}
		r.compare(name, p, m)
	case "-":
		r.ended++
		farewell, said := p.conn.Farewell()
		if what == "gone" {
			p.Leave(broker.Farewell{Code: 1006})
		} else if what == "1000" && !said && !p.conn.Ousted() {
			p.Leave(broker.Farewell{Code: 1000}) // the client's own wish
		} else if (what == "1006") != p.conn.Ousted() || said && strconv.Itoa(farewell.Code) != what {
			r.t.Errorf("%s ends with %v (dropped: %v), want %s", name, farewell, p.conn.Ousted(), what)
		}
	default:
		r.t.Fatalf("what is %q?", line)
	}
}

// frame reads a quoted one.
func (r *replay) frame(quoted string) []byte {
	r.t.Helper()
	text, err := strconv.Unquote(quoted)
	must(r.t, err)
	return []byte(text)
}

func (r *replay) decode(frame []byte) wire.Message {
	r.t.Helper()
	m, err := r.version.Decode(frame)
	must(r.t, err)
	if m.Sender == wire.Broker {
		m.ID = "" // made up anew each time
	}
	return m
}

// compare takes the next message that waits for a client; updates take a second to come.
func (r *replay) compare(name string, p peer, want wire.Message) {
	r.t.Helper()
	m, ok := p.Next()
	if !ok {
		<-time.After(time.Second)
		synctest.Wait()
		if m, ok = p.Next(); !ok {
			r.t.Fatalf("%s hears nothing, want %+v", name, want)
		}
	}
	frame, err := r.version.Append(nil, m)
	must(r.t, err)
	if diff := cmp.Diff(want, r.decode(frame)); diff != "" {
		r.t.Errorf("what %s hears (-want +got):\n%s", name, diff)
	}
}
