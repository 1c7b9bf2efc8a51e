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

// TestARecordedConversation plays what the original Ruby client library sent to the broker,
// and expects that it would have heard the same again.
func TestARecordedConversation(t *testing.T) {
	t.Parallel()
	tape, err := os.ReadFile("testdata/ruby-client.tape")
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		r := &replay{t: t, broker: open(t, nil), names: map[string]wire.URI{
			"agent1": "pcp://agent1/agent", "ctl": "pcp://ctl/controller", "second": "pcp://agent1/agent", "odd": "pcp://agent1/agent",
		}, peers: map[string]peer{}}
		go func() { _ = r.broker.Run(t.Context()) }()
		lines := bufio.NewScanner(bytes.NewReader(tape))
		for lines.Scan() {
			if line := lines.Text(); !strings.HasPrefix(line, "#") {
				r.line(line)
			}
		}
		if r.heard != 12 || r.ended != 4 {
			t.Errorf("%d messages were heard, and %d clients ended", r.heard, r.ended)
		}
	})
}

type replay struct {
	t            *testing.T
	broker       *broker.Broker
	names        map[string]wire.URI
	peers        map[string]peer
	heard, ended int
}

func (r *replay) line(line string) {
	r.t.Helper()
	name, rest, _ := strings.Cut(line, " ")
	act, what, _ := strings.Cut(rest, " ")
	p := r.peers[name]
	switch act {
	case "+":
		var err error
		r.peers[name], err = tryJoin(r.broker, r.names[name], wire.V1)
		must(r.t, err)
	case ">":
		p.Receive(r.t.Context(), r.frame(what), true)
	case "<":
		r.heard++
		r.compare(name, p, r.decode(r.frame(what)))
	case "-":
		r.ended++
		farewell, said := p.conn.Farewell()
		if what == "1000" && !said && !p.conn.Dropped() {
			p.Leave(broker.Farewell{Code: 1000}) // the client's own wish
		} else if (what == "1006") != p.conn.Dropped() || said && strconv.Itoa(farewell.Code) != what {
			r.t.Errorf("%s ends with %v (dropped: %v), want %s", name, farewell, p.conn.Dropped(), what)
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
	m, err := wire.V1.Decode(frame)
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
	frame, err := wire.V1.Append(nil, m)
	must(r.t, err)
	if diff := cmp.Diff(want, r.decode(frame)); diff != "" {
		r.t.Errorf("what %s hears (-want +got):\n%s", name, diff)
	}
}
