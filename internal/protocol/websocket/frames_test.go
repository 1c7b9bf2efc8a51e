package websocket

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gobwas/ws"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/broker"
)

// heard is what frames made of some bytes.
type heard struct {
	frames
	messages []string
	controls []string
	refused  []broker.Farewell
	held     int
}

func listen(limit int64, room int) *heard {
	h := &heard{}
	h.frames = frames{
		max:     limit,
		admit:   func(int64) bool { return true },
		reserve: func(n int) bool { h.held += n; return h.held <= room },
		release: func() { h.held = 0 },
		message: func(p []byte, binary bool) { h.messages = append(h.messages, fmt.Sprintf("%v %s", binary, p)) },
		control: func(f ws.Frame) { h.controls = append(h.controls, fmt.Sprintf("%x %s", f.Header.OpCode, f.Payload)) },
		refuse:  func(f broker.Farewell) { h.refused = append(h.refused, f) },
	}
	return h
}

// frameOf is a client's frame.
func frameOf(op ws.OpCode, fin bool, payload string) []byte {
	return ws.MustCompileFrame(ws.MaskFrameWith(ws.NewFrame(op, fin, []byte(payload)), [4]byte{1, 2, 3, byte(len(payload))}))
}

// TestFramesInAnyPieces cuts a stream of messages, fragments and control frames
// anywhere, and hears the same.
func TestFramesInAnyPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var messages, controls []string
		control := func() {
			if payload := rapid.StringN(0, 20, 125).Draw(t, "ping"); rapid.Bool().Draw(t, "pinged") {
				stream = append(stream, frameOf(ws.OpPing, true, payload)...)
				controls = append(controls, "9 "+payload)
			}
		}
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			control()
			op, payload := ws.OpText, strings.Repeat(rapid.String().Draw(t, "text"), rapid.SampledFrom([]int{1, 1, 50, 5000}).Draw(t, "times"))
			if rapid.Bool().Draw(t, "binary") {
				op = ws.OpBinary
			}
			messages = append(messages, fmt.Sprintf("%v %s", op == ws.OpBinary, payload))
			for rapid.Bool().Draw(t, "fragment") {
				n := rapid.IntRange(0, len(payload)).Draw(t, "length")
				stream = append(stream, frameOf(op, false, payload[:n])...)
				op, payload = ws.OpContinuation, payload[n:]
				control()
			}
			stream = append(stream, frameOf(op, true, payload)...)
		}
		h := listen(1<<30, 1<<30)
		for len(stream) > 0 {
			n := rapid.IntRange(1, min(len(stream), 20_000)).Draw(t, "piece")
			if err := h.feed(bytes.Clone(stream[:n])); err != nil {
				t.Fatal(err)
			}
			stream = stream[n:]
		}
		if diff := cmp.Diff(messages, h.messages); diff != "" {
			t.Fatalf("messages (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(controls, h.controls); diff != "" {
			t.Fatalf("control frames (-want +got):\n%s", diff)
		}
		if h.held != 0 || h.parts != nil || h.head != nil || h.inner != nil {
			t.Fatal("between messages memory is held")
		}
	})
}

func TestFramesThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	unmasked := ws.MustCompileFrame(ws.NewTextFrame([]byte("x")))
	for name, c := range map[string]struct {
		stream []byte
		want   string
	}{
		"unmasked":             {unmasked, "frames from client to server must be masked"},
		"reserved bits":        {append([]byte{0xf1}, frameOf(ws.OpText, true, "x")[1:]...), "non-zero rsv bits with no extension negotiated"},
		"unknown kind":         {frameOf(5, true, "x"), "use of reserved op code"},
		"long ping":            {frameOf(ws.OpPing, true, strings.Repeat("x", 126)), "control frame payload limit exceeded"},
		"ping in fragments":    {frameOf(ws.OpPing, false, "x"), "control frame is not final"},
		"no beginning":         {frameOf(ws.OpContinuation, true, "x"), "unexpected continuation data frame"},
		"beginning in between": {append(frameOf(ws.OpText, false, "x"), frameOf(ws.OpText, true, "y")...), "unexpected non-continuation data frame"},
		"negative length":      {[]byte{0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}, "header error: the most significant bit must be 0"},
	} {
		got, ok := errors.AsType[broker.Farewell](listen(100, 100).feed(c.stream))
		if !ok || got.Code != 1002 || !strings.Contains(got.Reason, c.want) {
			t.Errorf("%s: %v, want 1002 and %q", name, got, c.want)
		}
	}
}

func TestMessagesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream [][]byte
		room   int
		want   broker.Farewell
	}{
		"in one frame": {
			[][]byte{frameOf(ws.OpText, true, strings.Repeat("x", 101))}, 1000, broker.Farewell{
				Code: 1009, Reason: "Text message size [101] exceeds maximum size [100]",
			},
		},
		"announced": {
			[][]byte{{0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4}}, 1000, broker.Farewell{
				Code: 1009, Reason: "Binary message size [9223372036854775807] exceeds maximum size [100]",
			},
		},
		"in fragments": {
			[][]byte{frameOf(ws.OpBinary, false, strings.Repeat("x", 60)), frameOf(ws.OpContinuation, true, strings.Repeat("x", 60))}, 1000, broker.Farewell{
				Code: 1009, Reason: "Binary message size [120] exceeds maximum size [100]",
			},
		},
		"for all of them": {
			[][]byte{frameOf(ws.OpText, false, strings.Repeat("x", 60))}, 50, broker.Farewell{
				Code: 1013, Reason: "Too many large messages are on their way; try again later.",
			},
		},
	} {
		h := listen(100, c.room)
		for _, frame := range c.stream {
			if err := h.feed(frame); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff([]broker.Farewell{c.want}, h.refused); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if h.messages != nil || h.parts != nil {
			t.Errorf("%s: it came nevertheless: %q", name, h.messages)
		}
	}
	h := listen(100, 100)
	for _, frame := range [][]byte{frameOf(ws.OpText, true, strings.Repeat("x", 101)), frameOf(ws.OpText, true, "y"), frameOf(ws.OpClose, true, "")} {
		if err := h.feed(frame); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"8 "}, h.controls); diff != "" || h.messages != nil {
		t.Errorf("the close frame after it (-want +got):\n%s; messages %q", diff, h.messages)
	}
}

// FuzzFrames: any bytes, in any pieces, give the same, and hold no more than they brought.
func FuzzFrames(f *testing.F) {
	f.Add(append(frameOf(ws.OpText, false, "hello"), frameOf(ws.OpPing, true, "x")...), uint8(3))
	f.Add(append(frameOf(ws.OpBinary, true, strings.Repeat("x", 300)), frameOf(ws.OpClose, true, "\x03\xe8bye")...), uint8(100))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		whole, pieces := listen(1000, 2000), listen(1000, 2000)
		wholeErr := whole.feed(bytes.Clone(stream))
		var err error
		for part := range bytesIn(bytes.Clone(stream), int(piece)+1) {
			if err = pieces.feed(part); err != nil {
				break
			}
		}
		if fmt.Sprint(wholeErr) != fmt.Sprint(err) {
			t.Fatalf("whole: %v, in pieces: %v", wholeErr, err)
		}
		if diff := cmp.Diff(whole.messages, pieces.messages) + cmp.Diff(whole.controls, pieces.controls); diff != "" {
			t.Fatalf("(-whole +pieces):\n%s", diff)
		}
		if n := len(pieces.parts) + len(pieces.head) + len(pieces.inner); n > len(stream) || len(pieces.parts) > 1000 {
			t.Fatalf("%d bytes are held of %d", n, len(stream))
		}
	})
}

func bytesIn(p []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(p) > 0 {
			n := min(size, len(p))
			if !yield(p[:n:n]) {
				return
			}
			p = p[n:]
		}
	}
}
