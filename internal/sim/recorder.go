package sim

import (
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Recorder remembers what every simulated node executed. No fault reaches it: it is the
// truth that states are compared with. Its methods may be called concurrently.
type Recorder struct {
	mu      sync.Mutex
	done    map[Execution]*Count
	applied map[string][]Application
}

// Execution is a transaction on a node.
type Execution struct{ Node, Transaction string }

// Count is what became of it.
type Count struct {
	Begun    int  // times it was executed: more than once is what must never be
	ExitCode int  // with which it ends if nobody ends it before
	Vanished bool // its node was started anew before its end
}

// NewRecorder is one that has seen nothing.
func NewRecorder() *Recorder { return &Recorder{done: map[Execution]*Count{}} }

// begin notes that a program begins, and how it will end.
func (r *Recorder) begin(e Execution, exitCode int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.done[e]
	if c == nil {
		c = &Count{}
		r.done[e] = c
	}
	c.Begun++
	c.ExitCode = exitCode
}

// vanished notes that a program was gone before its end: its node was started anew.
func (r *Recorder) vanished(e Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.done[e]; c != nil {
		c.Vanished = true
	}
}

// Count is what became of one execution; nothing, if it never began.
func (r *Recorder) Count(e Execution) Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.done[e]; c != nil {
		return *c
	}
	return Count{}
}

// All is what became of each execution.
func (r *Recorder) All() map[Execution]Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[Execution]Count, len(r.done))
	for e, c := range r.done {
		all[e] = *c
	}
	return all
}

// Totals are how many transactions were executed, and which of them more than once.
func (r *Recorder) Totals() (executed int, twice []Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e, c := range r.done {
		if c.Begun > 1 {
			twice = append(twice, e)
		}
	}
	return len(r.done), twice
}

// apply notes an application.
func (r *Recorder) apply(node string, a Application) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.applied == nil {
		r.applied = map[string][]Application{}
	}
	r.applied[node] = append(r.applied[node], a)
}

// said notes what a run says, and interrupted that it ended without a word.
func (r *Recorder) said(node, report string, e pxp.RunEvent) {
	r.change(node, report, func(a *Application) { a.Events = append(a.Events, e) })
}

func (r *Recorder) interrupted(node, report string) {
	r.change(node, report, func(a *Application) { a.Interrupted = true })
}

func (r *Recorder) change(node, report string, how func(*Application)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	applied := r.applied[node]
	if i := slices.IndexFunc(applied, func(a Application) bool { return a.Report == report }); i >= 0 {
		how(&applied[i])
	}
}

// Applied are the catalogs that a node applied, in that order.
func (r *Recorder) Applied(node string) []Application {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.applied[node])
	for i := range all {
		all[i].Events = slices.Clone(all[i].Events)
	}
	return all
}
