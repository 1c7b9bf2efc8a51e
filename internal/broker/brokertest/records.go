package brokertest

import "sync"

// records is what the stores in memory have in common: they can fail, and count what was written.
type records struct {
	mu     sync.Mutex
	writes int
	err    error
}

// Fail makes all that is asked from now on fail; nil: no more.
func (r *records) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// Writes is how many transactions wrote something.
func (r *records) Writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

func (r *records) read(do func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		do()
	}
	return r.err
}

func (r *records) write(do func()) error {
	return r.read(func() {
		r.writes++
		do()
	})
}
