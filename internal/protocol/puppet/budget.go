package puppet

import (
	"io"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/fault"
)

// budget bounds the memory of one class's large bodies. The gates let 64 reports of
// 64 MiB in at once; ordinary ones have a tenth of a MiB. So the first MiB of a body
// comes with the place behind the gate, and all bodies of the class share what is
// beyond. Who finds nothing left is told to come back: it must not wait while it
// holds a part. Who is alone may go beyond the budget: what is allowed for one body
// must be possible.
type budget struct {
	bytes  int64
	lent   atomic.Int64
	limits Limits
}

func newBudget(limits Limits) *budget { return &budget{bytes: limits.LargeBytes, limits: limits} }

// borrow takes n bytes of the budget for the time of the call.
func (b *budget) borrow(c *call, n int64) error {
	lent := b.lent.Add(n)
	if alone := lent == c.borrowed+n; lent > b.bytes && !alone {
		b.lent.Add(-n)
		return fault.Later(b.limits.spread(), "too many large bodies are on their way at once")
	}
	c.borrowed += n
	return nil
}

// giveBack ends what borrow began.
func (c *call) giveBack() {
	if c.borrowed > 0 {
		c.large.lent.Add(-c.borrowed)
		c.borrowed = 0
	}
}

// sharing is a body that is kept in memory: it borrows as it grows.
type sharing struct {
	io.Reader
	call    *call
	seen    int64
	covered int64
}

// share makes body borrow what it has beyond its first MiB.
func (c *call) share(body io.Reader) io.Reader {
	return &sharing{Reader: body, call: c, covered: mebibyte}
}

func (r *sharing) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.seen += int64(n)
	for ; r.seen > r.covered; r.covered += mebibyte {
		if err := r.call.large.borrow(r.call, mebibyte); err != nil {
			return 0, err
		}
	}
	return n, err
}
