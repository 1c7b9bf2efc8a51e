package websocket

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gobwas/ws"
	"github.com/google/go-cmp/cmp"
)

// Only the first frame of a large message waits: one that goes on has its room, and
// control frames must never wait.
func TestLargeMessagesAskForRoom(t *testing.T) {
	t.Parallel()
	var asked []int64
	h := listen(1<<30, 1<<30)
	h.admit = func(n int64) bool { asked = append(asked, n); return len(asked) == 1 }
	large, small := strings.Repeat("x", largeBytes), strings.Repeat("x", largeBytes-1)
	var stream []byte
	for _, frame := range [][]byte{
		frameOf(ws.OpText, true, small), frameOf(ws.OpText, true, large), frameOf(ws.OpPing, true, "p"),
		frameOf(ws.OpBinary, false, large+"y"), frameOf(ws.OpContinuation, true, large),
	} {
		stream = append(stream, frame...)
	}
	for len(stream) > 0 {
		n := min(len(stream), readBytes)
		if err := h.feed(stream[:n]); err != nil {
			t.Fatal(err)
		}
		stream = stream[n:]
	}
	if diff := cmp.Diff([]int64{largeBytes, largeBytes + 1}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	want := []string{"false " + small, "false " + large, "true " + large + "y" + large}
	if len(h.messages) != 3 || h.messages[0] != want[0] || h.messages[1] != want[1] || h.messages[2] != want[2] {
		t.Errorf("%d messages came, or others than were sent", len(h.messages))
	}
}

func TestLargeMessagesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{large: newLargeRoom()}
		first, second, gone := &conn{server: s}, &conn{server: s}, &conn{server: s, ended: true}
		if !first.admit(t.Context(), 10<<20) {
			t.Fatal("an empty room is refused")
		}
		in := make(chan bool)
		go func() { in <- second.admit(t.Context(), 1<<40) }()
		synctest.Wait()
		select {
		case <-in:
			t.Fatal("the second did not wait")
		default:
		}
		first.leaveRoom()
		first.leaveRoom() // once is enough
		if !<-in {
			t.Error("the second did not get the room of the first")
		}
		go func() { in <- first.admit(t.Context(), 1) }()
		if <-in {
			t.Error("there was room beside a message that is larger than the room")
		}
		second.leaveRoom()
		if gone.admit(t.Context(), 1) || !first.admit(t.Context(), largeRoom) {
			t.Error("a connection that has ended took room")
		}
	})
}
