// Package machine is a node's machine in memory, for simulated nodes and for tests: its disk, its programs, its cache of files
// and its log of events. Each passes the suite of its port, as the real one does (orderstest, eventstest).
//
// A Machine is the part of a node that survives its agent: the disk and the
// programs that run. Boot gives what one agent process sees of it, until
// the next Boot or Crash: from then on the old one's calls fail and change nothing, as if the
// process had been killed.
//
// A machine without transactions is a few words, so that there can be thousands.
// Everything may be used concurrently.
package machine

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Ending is what a program does on a Machine.
type Ending struct {
	After  time.Duration // how long it runs
	Exit   int
	Stdout string
	Stderr string
	// Vanish ends it without an exit code, as if it and its watcher were killed.
	Vanish bool
	// Deaf ignores being asked to end: it takes Grace.
	Deaf bool
}

// Grace is how long a deaf program lives after it was asked to end.
const Grace = time.Second

// Machine is a node's disk and programs.
type Machine struct {
	// Program decides what a command does; nil: it ends at once with exit code 0. It is
	// called when a program starts, with the machine's lock held.
	Program func(place string, c orders.Command) Ending
	// Vanished is told of each program that ends without an exit code, with the machine's lock
	// held; nil: nobody is told.
	Vanished func(place string)

	mu       sync.Mutex
	boot     int
	full     bool
	started  map[string]int // programs by place
	spool    map[string]*kept
	programs map[string]*program
}

// kept is a directory of the spool.
type kept struct {
	record     orders.Record
	unreadable bool
	output     orders.Output
}

type program struct {
	ending Ending
	timer  *time.Timer
	limit  *time.Timer
	over   chan struct{}
	asked  bool
}

// Boot starts an agent process on the machine: an earlier one is dead from here on.
func (m *Machine) Boot() (*Spool, *Runner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot++
	return &Spool{m: m, boot: m.boot}, &Runner{m: m, boot: m.boot}
}

// Crash kills the agent process. Programs go on.
func (m *Machine) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot++
}

// Fill makes the disk full, or not.
func (m *Machine) Fill(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

// Spoil makes the record of a transaction unreadable.
func (m *Machine) Spoil(transaction string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.spool[transaction]; k != nil {
		k.unreadable = true
	}
}

// Started is how many programs were ever started, by transaction.
func (m *Machine) Started() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	copied := map[string]int{}
	for place, n := range m.started {
		copied[path.Base(place)] = n
	}
	return copied
}

// Busy is how many programs run.
func (m *Machine) Busy() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.programs)
}

// Reboot ends all programs without an exit code, as a power cut does.
func (m *Machine) Reboot() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot++
	for place, p := range m.programs {
		p.ending.Vanish = true
		m.end(place, p)
	}
}

// Spool is an orders.Spool on a Machine.
type Spool struct {
	m    *Machine
	boot int
}

var errDead = errors.New("machine: this agent was killed")

// enter locks the machine for a process that lives.
func (m *Machine) enter(boot int) (leave func(), err error) {
	m.mu.Lock()
	if m.boot != boot {
		m.mu.Unlock()
		return nil, errDead
	}
	return m.mu.Unlock, nil
}

// Begin implements orders.Spool.
func (s *Spool) Begin(r orders.Record) (string, error) {
	if err := pxp.CheckTransaction(r.Transaction); err != nil {
		return "", err
	}
	leave, err := s.m.enter(s.boot)
	if err != nil {
		return "", err
	}
	defer leave()
	if s.m.spool[r.Transaction] != nil {
		return "", fault.New(fault.Conflict, "the transaction %s is there already", r.Transaction)
	}
	if s.m.full {
		return "", fault.New(fault.Unavailable, "the spool's disk is full")
	}
	if s.m.spool == nil {
		s.m.spool = map[string]*kept{}
	}
	s.m.spool[r.Transaction] = &kept{record: r}
	return s.Place(r.Transaction), nil
}

// Place implements orders.Spool.
func (s *Spool) Place(transaction string) string { return "/spool/" + transaction }

// Save implements orders.Spool.
func (s *Spool) Save(r orders.Record) error {
	k, leave, err := s.find(r.Transaction)
	if err != nil {
		return err
	}
	defer leave()
	if s.m.full {
		return fault.New(fault.Unavailable, "the spool's disk is full")
	}
	k.record, k.unreadable = r, false
	return nil
}

// find returns a transaction with the machine locked.
func (s *Spool) find(transaction string) (*kept, func(), error) {
	leave, err := s.m.enter(s.boot)
	if err != nil {
		return nil, nil, err
	}
	k := s.m.spool[transaction]
	if k == nil {
		leave()
		return nil, nil, fault.New(fault.NotFound, "there is no transaction %s", transaction)
	}
	return k, leave, nil
}

// Load implements orders.Spool.
func (s *Spool) Load(transaction string) (orders.Record, error) {
	k, leave, err := s.find(transaction)
	if err != nil {
		return orders.Record{}, err
	}
	defer leave()
	if k.unreadable {
		return orders.Record{}, fault.New(fault.Invalid, "the record of %s cannot be read", transaction)
	}
	return k.record, nil
}

// List implements orders.Spool.
func (s *Spool) List() ([]orders.Record, error) {
	leave, err := s.m.enter(s.boot)
	if err != nil {
		return nil, err
	}
	defer leave()
	var list []orders.Record
	for _, k := range s.m.spool {
		if !k.unreadable {
			list = append(list, k.record)
		}
	}
	slices.SortFunc(list, func(a, b orders.Record) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Transaction, b.Transaction))
	})
	return list, nil
}

// Output implements orders.Spool.
func (s *Spool) Output(transaction string) (orders.Output, error) {
	k, leave, err := s.find(transaction)
	if err != nil {
		return orders.Output{}, err
	}
	defer leave()
	return k.output, nil
}

// Write implements orders.Spool.
func (s *Spool) Write(transaction string, o orders.Output) error {
	k, leave, err := s.find(transaction)
	if err != nil {
		return err
	}
	defer leave()
	if s.m.full {
		return fault.New(fault.Unavailable, "the spool's disk is full")
	}
	o.Begun = true
	k.output = o
	return nil
}

// Remove implements orders.Spool.
func (s *Spool) Remove(transaction string) error {
	leave, err := s.m.enter(s.boot)
	if err != nil {
		return err
	}
	defer leave()
	delete(s.m.spool, transaction)
	return nil
}

// Purge implements orders.Spool. Unreadable transactions count as old as their record.
func (s *Spool) Purge(before time.Time, keep func(string) bool) (int, error) {
	leave, err := s.m.enter(s.boot)
	if err != nil {
		return 0, err
	}
	var old []string
	for id, k := range s.m.spool {
		if k.record.Start.Before(before) && (k.unreadable || k.record.Status.Over()) {
			old = append(old, id)
		}
	}
	leave()
	gone := 0
	for _, id := range old {
		if keep(id) {
			continue
		}
		if err := s.Remove(id); err != nil {
			return gone, err
		}
		gone++
	}
	return gone, nil
}

// Runner is an orders.Runner on a Machine.
type Runner struct {
	m    *Machine
	boot int
}

// Start implements orders.Runner.
func (r *Runner) Start(ctx context.Context, place string, c orders.Command) error {
	leave, err := r.m.enter(r.boot)
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.m.programs == nil {
		r.m.programs, r.m.started = map[string]*program{}, map[string]int{}
	}
	r.m.started[place]++
	p := &program{over: make(chan struct{})}
	if r.m.Program != nil {
		p.ending = r.m.Program(place, c)
	}
	r.m.programs[place] = p
	r.m.output(place).Begun = true
	if p.ending.After <= 0 {
		r.m.end(place, p)
		return nil
	}
	p.timer = time.AfterFunc(p.ending.After, func() { r.m.expire(place, p, "") })
	if c.Timeout > 0 && c.Timeout < p.ending.After {
		p.limit = time.AfterFunc(c.Timeout, func() { r.m.expire(place, p, pxp.EndedByTime) })
	}
	return nil
}

// expire ends a program by itself, or for a reason.
func (m *Machine) expire(place string, p *program, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.programs[place] != p {
		return
	}
	if why != "" {
		m.output(place).Ended, p.ending.Exit = why, 143
	}
	m.end(place, p)
}

// output is where a program at place leaves its output, even if the transaction is gone.
func (m *Machine) output(place string) *orders.Output {
	if k := m.spool[path.Base(place)]; k != nil {
		return &k.output
	}
	return &orders.Output{}
}

// end leaves what p leaves. The machine is locked.
func (m *Machine) end(place string, p *program) {
	for _, timer := range []*time.Timer{p.timer, p.limit} {
		if timer != nil {
			timer.Stop()
		}
	}
	switch {
	case !p.ending.Vanish:
		o := m.output(place)
		exit := p.ending.Exit
		o.Exit, o.Stdout, o.Stderr = &exit, []byte(p.ending.Stdout), []byte(p.ending.Stderr)
	case m.Vanished != nil:
		m.Vanished(place)
	}
	delete(m.programs, place)
	close(p.over)
}

// Alive implements orders.Runner.
func (r *Runner) Alive(place string) bool {
	leave, err := r.m.enter(r.boot)
	if err != nil {
		return false
	}
	defer leave()
	return r.m.programs[place] != nil
}

// Wait implements orders.Runner.
func (r *Runner) Wait(ctx context.Context, place string) error {
	leave, err := r.m.enter(r.boot)
	if err != nil {
		return err
	}
	p := r.m.programs[place]
	leave()
	if p == nil {
		return nil
	}
	select {
	case <-p.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop implements orders.Runner.
func (r *Runner) Stop(place string) error {
	leave, err := r.m.enter(r.boot)
	if err != nil {
		return err
	}
	defer leave()
	p := r.m.programs[place]
	if p == nil || p.asked {
		return nil
	}
	p.asked = true
	p.ending.Exit = 143
	r.m.output(place).Ended = pxp.EndedByOrder
	after := time.Duration(0)
	if p.ending.Deaf {
		p.ending.Exit, after = 137, Grace
	}
	if p.timer.Stop() {
		p.timer = time.AfterFunc(after, func() { r.m.expire(place, p, "") })
	}
	return nil
}
