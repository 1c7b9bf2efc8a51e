package sql

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// act is what one caller wants to write. It may run more than once, and sets
// results only as its last step.
type act func(ctx context.Context, q querier) error

// Bounds of a batch: how many acts share a commit, and how long the first may
// wait for the last.
const (
	batchActs = 256
	batchTime = 50 * time.Millisecond
)

// writer commits in groups on the one connection that may write. There is no
// goroutine: of those who wait, one takes the turn and works for all.
type writer struct {
	conn   *sql.Conn
	stmts  *prepared
	queue  chan *order
	turn   chan struct{} // holds a token while somebody leads
	closed atomic.Bool
}

// order is an act in the queue.
type order struct {
	act   act
	state atomic.Int32 // waiting, then taken or given up
	err   error
	done  chan struct{}
}

const (
	waiting int32 = iota
	taken
	givenUp
)

func newWriter(conn *sql.Conn, queue int) *writer {
	return &writer{
		conn:  conn,
		stmts: &prepared{on: conn, statements: map[string]*sql.Stmt{}},
		queue: make(chan *order, queue),
		turn:  make(chan struct{}, 1),
	}
}

// do runs a and returns when it is committed, or was refused.
func (w *writer) do(ctx context.Context, a act) error {
	o := &order{act: a, done: make(chan struct{})}
	for !w.offer(o) {
		select {
		case w.turn <- struct{}{}: // nobody leads: all who wait in the queue may have given up
			w.lead(context.WithoutCancel(ctx))
		default:
			return fault.Later(time.Second, "the database has %d writes waiting and takes no more now", cap(w.queue))
		}
	}
	for {
		select {
		case <-o.done:
			return o.err
		case w.turn <- struct{}{}:
			w.lead(context.WithoutCancel(ctx))
		case <-ctx.Done():
			if o.state.CompareAndSwap(waiting, givenUp) {
				return ctx.Err()
			}
			<-o.done
			return o.err
		}
	}
}

// offer puts o into the queue unless that is full.
func (w *writer) offer(o *order) bool {
	select {
	case w.queue <- o:
		return true
	default:
		return false
	}
}

// lead runs and commits what is queued, and gives the turn back.
func (w *writer) lead(ctx context.Context) {
	defer func() { <-w.turn }()
	first := w.next()
	if first == nil {
		return
	}
	batch := []*order{first}
	err := w.begin(ctx)
	if err == nil {
		batch, err = w.runAll(ctx, batch)
	}
	if err == nil {
		_, err = w.stmts.exec(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = w.stmts.exec(ctx, "ROLLBACK") // it may be over already
	}
	for _, o := range batch {
		if o.err == nil {
			o.err = err
		}
		close(o.done)
	}
}

func (w *writer) begin(ctx context.Context) error {
	if w.closed.Load() {
		return fault.New(fault.Unavailable, "the database is closed")
	}
	_, err := w.stmts.exec(ctx, "BEGIN IMMEDIATE")
	return err
}

// next takes an order whose caller still waits; nil when there is none.
func (w *writer) next() *order {
	for {
		select {
		case o := <-w.queue:
			if o.state.CompareAndSwap(waiting, taken) {
				return o
			}
		default:
			return nil
		}
	}
}

// runAll runs batch, which holds one order, and what else is queued. It returns an
// error when the whole transaction is lost.
func (w *writer) runAll(ctx context.Context, batch []*order) ([]*order, error) {
	start := time.Now()
	for o := batch[0]; o != nil; {
		if err := w.run(ctx, o); err != nil {
			return batch, err
		}
		if len(batch) == batchActs || time.Since(start) > batchTime {
			return batch, nil
		}
		if o = w.next(); o != nil {
			batch = append(batch, o)
		}
	}
	return batch, nil
}

// run runs one order behind a savepoint. Its own failure is kept in it; the error
// returned is that of the transaction.
func (w *writer) run(ctx context.Context, o *order) error {
	if _, err := w.stmts.exec(ctx, "SAVEPOINT act"); err != nil {
		return err
	}
	o.err = w.guard(ctx, o.act)
	if o.err != nil {
		if _, err := w.stmts.exec(ctx, "ROLLBACK TO act"); err != nil {
			return o.err // a full disk ends the transaction as a whole
		}
	}
	_, err := w.stmts.exec(ctx, "RELEASE act")
	return err
}

// guard makes a panic an error: the others in the batch must get their answers.
func (w *writer) guard(ctx context.Context, a act) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a write panicked: %v", r)
		}
	}()
	return a(ctx, w.stmts)
}

// close waits for the running batch and refuses all later ones.
func (w *writer) close() {
	w.closed.Store(true)
	w.turn <- struct{}{}
	w.stmts.close()
	_ = w.conn.Close()
	<-w.turn
}
