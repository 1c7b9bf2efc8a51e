package puppetapi

import (
	"io"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/fault"
)

// budget bounds the memory of large bodies. The gates let 64 reports of 64 MiB in at
// once; ordinary ones have a tenth of a MiB. So the first MiB of a body comes with
// the place behind the gate, and all bodies share what is beyond. Who finds
// nothing left is told to come back: it must not wait while it holds a part.
type budget struct{ left atomic.Int64 }

// borrow takes n bytes of the budget for the time of the call.
func (s *server) borrow(c *call, n int64) error {
	if s.large.left.Add(-n) < 0 {
		s.large.left.Add(n)
		return fault.Later(s.Limits.spread(), "too many large bodies are on their way at once")
	}
	c.borrowed += n
	return nil
}

// giveBack ends what borrow began.
func (s *server) giveBack(c *call) {
	s.large.left.Add(c.borrowed)
	c.borrowed = 0
}

// sharing is a body that is kept in memory: it borrows as it grows.
type sharing struct {
	io.Reader
	server  *server
	call    *call
	seen    int64
	covered int64
}

// share makes body borrow what it has beyond its first MiB.
func (s *server) share(c *call, body io.Reader) io.Reader {
	return &sharing{Reader: body, server: s, call: c, covered: mebibyte}
}

func (r *sharing) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.seen += int64(n)
	for ; r.seen > r.covered; r.covered += mebibyte {
		if err := r.server.borrow(r.call, mebibyte); err != nil {
			return 0, err
		}
	}
	return n, err
}
