package compile

import (
	"errors"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
)

// strikes counts, by row, the attempts of this process that ended without an answer. Leases
// that were lost with a server that was killed or stopped are none of them: they say nothing
// of the row. So the count is kept in memory, and ends with the process.
type strikes struct {
	mu  sync.Mutex
	row map[int64]int
}

// maxStruck is of how many rows strikes are known; beyond that all is forgotten, and rows get
// more attempts than they should.
const maxStruck = 100_000

// patience is how many more attempts a row gets whose compiler was not there at all, killed or
// starved on a busy machine, than one that failed while it had one.
const patience = 4

// add counts an attempt that ended with err, and tells how many count by now.
func (s *strikes) add(row int64, err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.row == nil || len(s.row) >= maxStruck {
		s.row = map[int64]int{}
	}
	weight := patience
	if _, ok := errors.AsType[absent](err); ok {
		weight = 1
	}
	s.row[row] += weight
	return s.row[row] / patience
}

// over forgets a row that was answered.
func (s *strikes) over(row int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.row, row)
}

// died is a compiler process that died over an order, more than once. It may be the order's
// doing, or have been killed by somebody: only one who tries again finds out.
type died struct{ failure *Error }

func (d died) Error() string { return d.failure.Message }

// absent is a compiler that could not be had: killed, or starved on a busy machine.
type absent struct{ error }

func (a absent) Unwrap() error { return a.error }

// compiled is err of a compiler, with what may pass told from what does not.
func compiled(err error) error {
	if failed := asError(err); failed != nil && failed.Cause == CauseCrash {
		return died{failed}
	}
	if fault.Is(err, fault.Unavailable) {
		return absent{err}
	}
	return err
}
