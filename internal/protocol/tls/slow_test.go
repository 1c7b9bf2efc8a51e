package tls

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestAClientThatDoesNotReadIsGivenUp writes to a client that takes ten bytes
// and stops: what follows must not look like the rest of the answer.
func TestAClientThatDoesNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _, _ = here.Close(), there.Close() }()
		c := &conn{Conn: here}
		go func() { _, _ = io.ReadFull(there, make([]byte, 10)) }()
		start := time.Now()
		c.cork()
		if n, err := c.Write(make([]byte, 1000)); n != 1000 || err != nil {
			t.Errorf("held back: %d, %v", n, err)
		}
		if err := c.uncork(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want a deadline", err)
		}
		if took := time.Since(start); took != corkTime {
			t.Errorf("it took %s", took)
		}
		_ = here.SetWriteDeadline(time.Time{})
		if _, err := c.Write([]byte("more")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write after half an answer: %v", err)
		}
		if c.out.held != nil {
			t.Error("the buffer is kept")
		}
	})
}

func TestWhatDoesNotFitGoesOutInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		c := &conn{Conn: here}
		got := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(there)
			got <- all
		}()
		c.cork()
		var want []byte
		for i, n := range []int{10, corkBytes - 5, corkBytes, corkBytes + 1, 3, 0, 2 * corkBytes, 7} {
			piece := make([]byte, n)
			for j := range piece {
				piece[j] = byte(i)
			}
			if sent, err := c.Write(piece); sent != n || err != nil {
				t.Errorf("piece %d: %d, %v", i, sent, err)
			}
			want = append(want, piece...)
		}
		if err := c.uncork(); err != nil {
			t.Error(err)
		}
		_ = here.Close()
		if all := <-got; string(all) != string(want) {
			t.Errorf("got %d bytes, want %d, or in another order", len(all), len(want))
		}
	})
}
