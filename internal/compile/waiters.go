package compile

import "sync"

// waiters is who waits for which compilation. It holds at most max of them.
type waiters struct {
	max  int
	mu   sync.Mutex
	n    int
	rows map[int64]*crowd
}

// crowd is everybody who waits for one compilation.
type crowd struct {
	n    int
	done chan struct{} // closed when the compilation has ended
}

func newWaiters(most int) *waiters {
	return &waiters{max: most, rows: map[int64]*crowd{}}
}

// join adds one who waits for id until it calls leave; not ok when too many wait
// already.
func (w *waiters) join(id int64) (done <-chan struct{}, leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n >= w.max {
		return nil, nil, false
	}
	c := w.rows[id]
	if c == nil {
		c = &crowd{done: make(chan struct{})}
		w.rows[id] = c
	}
	c.n++
	w.n++
	return c.done, func() { w.leave(id, c) }, true
}

func (w *waiters) leave(id int64, c *crowd) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
	if c.n--; c.n == 0 && w.rows[id] == c {
		delete(w.rows, id)
	}
}

// wake tells everybody who waits for id to look.
func (w *waiters) wake(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.rows[id]; c != nil {
		close(c.done)
		delete(w.rows, id)
	}
}

// wakeAll tells everybody to look.
func (w *waiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.rows {
		close(c.done)
	}
	clear(w.rows)
}

func (w *waiters) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}
