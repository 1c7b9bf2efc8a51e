package ruby

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
)

// memoryEvery is how often the resident memory of a busy worker is looked at.
const memoryEvery = 100 * time.Millisecond

// errTimeout is the cause of a context that ended because a compile took too long.
var errTimeout = errors.New("the compile took too long")

// errGone is the cause of a context that ended because the worker did.
var errGone = errors.New("the worker has ended")

// goneError says that a process died under us; trying again may work.
type goneError struct {
	z   *zygote
	pid int // of the worker; zero when the zygote itself died
	err error
}

func (e *goneError) Error() string { return "a compiler process died: " + e.err.Error() }
func (e *goneError) Unwrap() error { return e.err }

// settle returns when it is known whether the zygote died, too.
func (e *goneError) settle(ctx context.Context) {
	if e.pid != 0 && e.z.reap(ctx, e.pid) == nil {
		return
	}
	e.z.kill()
	<-e.z.ended
}

// final is what the caller learns when the second attempt died as well. With the
// zygote alive it is the order that kills workers.
func (e *goneError) final() error {
	if e.z.alive() {
		return &compile.Error{Cause: compile.CauseCrash, Message: "the compiler process died twice while it compiled this catalog"}
	}
	return fault.Wrap(fault.Unavailable, e, "the compiler was killed, try again")
}

// worker is a forked Ruby process. One goroutine at a time uses it.
type worker struct {
	z       *zygote
	pid     int
	conn    *net.UnixConn
	reader  *bufio.Reader
	lessons int64 // what its zygote had learned when it was forked
	born    int64 // resident bytes after its birth

	compiles int
	newTypes int   // classes and defined types that the last compile loaded
	resident int64 // after the last compile
	broken   bool
	busy     atomic.Bool // an order was sent
	hungry   atomic.Bool // it was killed because it held too much memory
}

func newWorker(z *zygote, pid int, conn *net.UnixConn, lessons int64) *worker {
	return &worker{
		z: z, pid: pid, conn: conn, reader: bufio.NewReaderSize(conn, 64<<10), lessons: lessons, born: z.process.Resident(pid),
	}
}

// worn tells that the worker must be replaced.
func (w *worker) worn() bool {
	return w.broken || w.compiles >= w.z.cfg.CompilesPerWorker || w.resident-w.born > w.z.cfg.RetireBytes ||
		w.lessons < w.z.lessons.Load()
}

// compile sends the order and waits for the catalog; it kills the process group
// when ctx ends, the time is up, or the memory is too much. What the code started and
// left running has ended when it returns, and that worker with it.
func (w *worker) compile(ctx context.Context, order compile.Order) (compile.Outcome, error) {
	w.compiles++
	w.newTypes = 0
	started := time.Now()
	var outcome compile.Outcome
	reply, talk, err := w.attend(ctx, order, func(answer func(*message) error) (reply *workerReply, err error) {
		reply, outcome, err = w.converse(order, answer)
		return reply, err
	})
	outcome.Cost.Wall = time.Since(started)
	switch {
	case err != nil:
		return compile.Outcome{}, err
	case talk.failed != nil: // whatever the code made of it
		return compile.Outcome{}, talk.failed
	case reply.Error != nil:
		reply.Error.Logs = reply.Logs
		return compile.Outcome{Asked: talk.asked, Answers: talk.answers}, reply.Error
	default:
		outcome.Collected, outcome.Asked, outcome.Answers = talk.collected, talk.asked, talk.answers
		return outcome, nil
	}
}

// attend speaks with the worker within its bounds, and answers what the order's code asks meanwhile.
func (w *worker) attend(
	ctx context.Context, order compile.Order, converse func(answer func(*message) error) (*workerReply, error),
) (*workerReply, *asking, error) {
	timed, end := context.WithTimeoutCause(ctx, w.z.cfg.Timeout, errTimeout)
	defer end()
	limited, cancel := context.WithCancelCause(timed)
	stop := context.AfterFunc(limited, w.kill)
	w.busy.Store(true)
	defer w.busy.Store(false)
	var watching sync.WaitGroup
	watching.Go(func() { w.watch(limited, cancel) })
	talk := newAsking(w.z.known, w.z.cfg, w.conn, order)
	reply, err := converse(func(m *message) error { return talk.answer(limited, m) })
	stopped := !stop()
	ended := context.Cause(limited)
	cancel(nil)
	watching.Wait()
	w.broken = stopped || err != nil || reply.Spent || w.hungry.Load() || w.z.process.Clear(w.pid)
	if err != nil {
		return nil, talk, w.explain(ctx, ended, err)
	}
	return reply, talk, nil
}

// watch kills the worker when it holds too much, until ctx is done. When the
// worker is gone it gives up, so that nobody goes on to look for answers.
func (w *worker) watch(ctx context.Context, giveUp context.CancelCauseFunc) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch resident := w.z.process.Resident(w.pid); {
		case resident == 0:
			giveUp(errGone)
		case resident > w.z.cfg.MemoryBytes:
			w.hungry.Store(true)
			w.kill()
		}
	}
}

func (w *worker) kill() {
	w.z.process.KillGroup(w.pid)
	_ = w.conn.Close()
}

func (w *worker) converse(order compile.Order, answer func(*message) error) (*workerReply, compile.Outcome, error) {
	if err := writeRequest(w.conn, &request{Op: "compile", Order: toWire(order)}); err != nil {
		return nil, compile.Outcome{}, err
	}
	reply, err := hear[workerReply](w.reader, answer)
	if err != nil {
		return nil, compile.Outcome{}, err
	}
	w.newTypes, w.resident = reply.NewTypes, reply.ResidentBytes
	outcome := compile.Outcome{
		Logs: reply.Logs, Reads: reply.Inputs.reads(), Engine: w.z.engine,
		Cost: compile.Cost{CPU: time.Duration(reply.CPUNanos), PeakBytes: reply.PeakBytes},
	}
	if reply.Error != nil {
		return reply, outcome, nil //nolint:nilerr // the conversation went well, its subject is an error
	}
	if outcome.Catalog, err = readDocument(w.reader, reply.CatalogBytes, w.z.cfg.MaxCatalogBytes); err != nil {
		return nil, outcome, err
	}
	outcome.Exported, err = readDocument(w.reader, reply.ExportedBytes, w.z.cfg.MaxCatalogBytes)
	return reply, outcome, err
}

// explain says why a conversation broke.
func (w *worker) explain(ctx context.Context, ended, err error) error {
	failure, known := errors.AsType[*compile.Error](err)
	switch {
	case known:
		return failure
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(ended, errTimeout):
		return &compile.Error{
			Cause:   compile.CauseTimeout,
			Message: fmt.Sprintf("the catalog was not compiled within %s", fault.Duration(w.z.cfg.Timeout)),
		}
	case w.hungry.Load():
		return &compile.Error{
			Cause:   compile.CauseMemory,
			Message: fmt.Sprintf("the compile wanted more than %d MB of memory", w.z.cfg.MemoryBytes>>20),
		}
	default:
		return &goneError{z: w.z, pid: w.pid, err: err}
	}
}
