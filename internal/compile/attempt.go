package compile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// product is what an attempt gave: its row as it should be finished.
type product struct {
	Compilation
	second *second // what the compiler was asked for, for a second opinion; nil: it was not
	result *Result // a fresh catalog and what can be asked about it; nil: a stored one was used again
}

// attempt compiles c and finishes its row, or lets it rest.
func (d *Dispatcher) attempt(ctx context.Context, c Compilation) {
	d.try(ctx, c, func(ctx context.Context) (product, error) { return d.produce(ctx, c) })
	if errors.Is(context.Cause(ctx), errStopped) {
		d.putBack(context.WithoutCancel(ctx), c)
	}
}

// try finishes the row of c with what work gives.
func (d *Dispatcher) try(ctx context.Context, c Compilation, work func(context.Context) (product, error)) {
	began := time.Now()
	made, err := d.compile(ctx, work)
	c.FactsSeq = max(c.FactsSeq, made.FactsSeq)
	d.count.wall.Add(int64(time.Since(began)))
	log := d.Log.With("node", c.Node, "environment", c.Environment, "compilation", c.ID, "attempt", c.Attempts)
	switch failed := asError(err); {
	case errors.Is(context.Cause(ctx), errStopped):
		return
	case ctx.Err() != nil:
		d.count.lost.Add(1)
		log.InfoContext(ctx, "compilation stopped: its lease is lost or the server stops")
		return
	case err == nil:
		c = made.Compilation
	case failed != nil:
		c = asFailed(c, failed, d.Now())
		c.Order = made.Order
	case fault.Of(err) == fault.Conflict: // the node was purged, or left
		d.thrownAway(ctx, log, err)
		return
	case fault.RetryAfter(err) > 0: // a store that is away or full says so: it passes, and is never the row's fault
		d.rest(ctx, log, c, err)
		return
	case d.strikes.add(c.ID, err) >= d.attempts(c):
		log.ErrorContext(ctx, "compilation could not be tried, giving up", "err", err)
		c = asFailed(c, gaveUp(c.Attempts, err), d.Now())
	default:
		d.rest(ctx, log, c, err)
		return
	}
	d.strikes.over(c.ID)
	d.turns.over(c.ID)
	if err = d.finish(ctx, c); errors.Is(err, ErrUnstaged) {
		made.Staged = false
		d.try(ctx, c, func(ctx context.Context) (product, error) { return d.unstage(ctx, made) })
		return
	}
	if err != nil {
		d.thrownAway(ctx, log, err)
		return
	}
	d.tell(ctx, c)
	if made.second != nil {
		made.second.Compilation = c
		d.Verifier.ended(made.second)
	}
}

// attempts is how many there are before c is failed.
func (d *Dispatcher) attempts(c Compilation) int {
	if c.Priority <= Waited {
		return d.cfg.MaxAttempts
	}
	return d.cfg.AheadMax
}

// thrownAway ends an attempt whose row did not take what it gave: it is held by
// nobody, or by a lease that runs out.
func (d *Dispatcher) thrownAway(ctx context.Context, log *slog.Logger, err error) {
	d.count.lost.Add(1)
	log.WarnContext(ctx, "compilation ended but its row did not take it, the result is thrown away", "err", err)
}

// rest gives c back that could not be tried.
func (d *Dispatcher) rest(ctx context.Context, log *slog.Logger, c Compilation, err error) {
	d.count.retried.Add(1)
	rest := backoff(c.Attempts)
	log.WarnContext(ctx, "compilation could not be tried, will retry", "rest", rest, "err", err)
	if err := d.Queue.Rest(ctx, c, d.Now().Add(rest), troubleOf(err)); err != nil && ctx.Err() == nil {
		log.ErrorContext(ctx, "give a compilation back failed, its lease will run out", "err", err)
	}
}

// compile does work within its time and returns what it made, or why there is no
// catalog.
func (d *Dispatcher) compile(parent context.Context, work func(context.Context) (product, error)) (product, error) {
	ctx, cancel := context.WithTimeout(parent, d.cfg.Timeout)
	defer cancel()
	made, err := work(ctx)
	if err != nil && asError(err) == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && parent.Err() == nil {
		err = &Error{Cause: CauseTimeout, Message: fmt.Sprintf("the compilation took longer than %s", fault.Duration(d.cfg.Timeout))}
	}
	return made, err
}

// produce makes the catalog and stores all of it except the row. A crash before
// the row is finished repeats it.
func (d *Dispatcher) produce(ctx context.Context, c Compilation) (product, error) {
	made := product{Compilation: c}
	if done, ok := d.reuse(ctx, c); ok {
		made.Compilation = done
		return made, nil
	}
	check := d.Reuser.recheck(ctx, c)
	order, seq, err := d.Orders.Build(ctx, c)
	if err != nil {
		return made, err
	}
	c.FactsSeq, made.FactsSeq = seq, seq
	made.Order = order.digest(d.Compiler.Engine(ctx, c.Environment, c.Version))
	if known := d.knownFailure(ctx, c, made.Order); known != nil {
		made.Order = ""
		return made, known
	}
	outcome, err := d.Compiler.Compile(ctx, order)
	if order.Reach == "" { // the second opinion would ask for everything
		made.second = &second{order: order, asked: outcome.Asked, answers: outcome.Answers}
	}
	if err != nil {
		return made, compiled(order.Blamed(err))
	}
	document, used, err := d.document(ctx, c, outcome)
	if err != nil {
		made.second = nil // no compiler said so
		return made, err
	}
	if c.Catalog, err = d.Documents.SaveDocument(ctx, document); err != nil {
		return made, fmt.Errorf("store the catalog: %w", err)
	}
	c.State, c.FinishedAt, c.UUID, c.Cost = Done, d.Now(), uuid.NewString(), outcome.Cost
	c.Logs = boundLogs(outcome.Logs)
	c.Inputs = newInputSet(order, outcome, used)
	check.compare(ctx, order, c, document)
	made.Compilation = c
	made.result = &Result{Compilation: c, Document: document, Collected: outcome.Collected, Logs: outcome.Logs}
	return d.publish(ctx, made)
}

// publish makes the catalog its node's newest, unless it is staged. What the brake holds is staged from then on.
func (d *Dispatcher) publish(ctx context.Context, made product) (product, error) {
	if made.Staged || d.Results == nil {
		return made, nil
	}
	err := d.Results.SaveCatalog(ctx, *made.result)
	if errors.Is(err, ErrHeld) {
		made.Staged, made.Held = true, true
		return made, nil
	}
	if err != nil {
		return made, fmt.Errorf("store the catalog's resources: %w", err)
	}
	return made, nil
}

// unstage goes on with what was made staged and is wanted plain by now.
func (d *Dispatcher) unstage(ctx context.Context, made product) (product, error) {
	if made.result == nil {
		return d.produce(ctx, made.Compilation)
	}
	made.result.Compilation.Staged = false
	return d.publish(ctx, made)
}

// reuse ends c with the catalog that is stored, if that stands. Its row then only
// points to it.
func (d *Dispatcher) reuse(ctx context.Context, c Compilation) (Compilation, bool) {
	if d.Reuser == nil || c.Checks != 0 || c.Reach != "" {
		return c, false
	}
	found, ok := d.Reuser.Find(ctx, Wish{
		Node: c.Node, Environment: c.Environment, Version: c.Version, Trusted: c.Trusted, Transaction: c.Transaction, Priority: c.Priority,
		Staged: c.Staged,
	})
	if ok {
		c.State, c.FinishedAt, c.FactsSeq, c.Catalog, c.UUID = Done, d.Now(), max(c.FactsSeq, found.FactsSeq), found.Catalog, found.UUID
		c.Inputs = found.Inputs
		if found.Staged && !c.Staged {
			c.Staged, c.Held = true, true
		}
	}
	return c, ok
}

// document brings the outcome into its stored form. A compiler that gives no
// catalog at all would do so again: that is a failed compilation.
func (d *Dispatcher) document(ctx context.Context, c Compilation, o Outcome) (document []byte, used Sources, err error) {
	if n := len(o.Catalog) + len(o.Exported); n > d.cfg.MaxBytes {
		return nil, used, &Error{Cause: CauseMemory, Logs: o.Logs, Message: fmt.Sprintf(
			"the catalog has %d bytes, at most %d are allowed", n, d.cfg.MaxBytes)}
	}
	if d.Finisher != nil {
		var inlined []byte
		inlined, used, err = d.Finisher.Inline(ctx, c.Environment, c.Version, o.Catalog)
		if fault.Is(err, fault.Invalid) { // as with a source that does not exist: it stays wrong
			return nil, used, &Error{Cause: CauseCode, Message: fault.Detail(err), Logs: o.Logs}
		}
		if err != nil {
			return nil, used, fmt.Errorf("inline file metadata: %w", err)
		}
		o.Catalog = json.RawMessage(inlined)
	}
	document, _, err = catalog.Normalise(o.Catalog, o.Exported)
	if err != nil {
		return nil, used, &Error{Cause: CauseCrash, Message: fault.Detail(err), Logs: o.Logs}
	}
	return document, used, nil
}

func asFailed(c Compilation, err *Error, at time.Time) Compilation {
	c.State, c.FinishedAt, c.Err = Failed, at, err
	c.Catalog, c.UUID = "", ""
	return c
}

// gaveUp is the error of a row that could not even be tried.
func gaveUp(attempts int, err error) *Error {
	if over, ok := errors.AsType[died](err); ok {
		return over.failure
	}
	return &Error{Cause: CauseCrash, Message: fmt.Sprintf("the compilation could not be done in %s: %s", fault.Count(attempts, "attempt"), troubleOf(err))}
}

// troubleOf is what people are shown of an error that is not the code's.
func troubleOf(err error) string {
	if over, ok := errors.AsType[died](err); ok {
		return over.failure.Message
	}
	return cmp.Or(fault.Detail(err), "the server's log says why")
}

// knownFailure is the error that compiling order gave a moment ago, if it is not to be
// tried again. Whatever is wrong with looking is a reason to compile.
func (d *Dispatcher) knownFailure(ctx context.Context, c Compilation, order fleet.Digest) *Error {
	if d.History == nil || c.Priority < NewCode {
		return nil
	}
	last, err := d.History.LastFailure(ctx, c.Node, c.Environment, c.Version)
	if err != nil || !standsFor(order, c.Priority, last, time.Now()) {
		return nil //nolint:nilerr // then it is tried
	}
	return last.Err
}

// The bounds of logs that are kept of a compilation that gave a catalog.
const (
	maxLogs     = 200
	maxLogBytes = 64 << 10
)

// boundLogs keeps the first ones.
func boundLogs(logs []Log) []Log {
	room := maxLogBytes
	for i, l := range logs {
		if room -= len(l.Message) + len(l.File); i == maxLogs || room < 0 {
			return append(slices.Clip(logs[:i]), Log{Level: "notice", Message: "not kept: " + fault.Count(len(logs)-i, "more message")})
		}
	}
	return logs
}

// finish closes the row. The work is done and stored, so a busy store is asked
// again for about a minute, in which the lease is renewed; a lost lease is final.
func (d *Dispatcher) finish(ctx context.Context, c Compilation) error {
	const most = 5 * time.Second
	pause := 200 * time.Millisecond
	for n := 1; ; n++ {
		err := d.Queue.Finish(ctx, c)
		if err == nil || fault.Of(err) == fault.Conflict || n == 15 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, most)
	}
}

// tell counts and announces a finished row.
func (d *Dispatcher) tell(ctx context.Context, c Compilation) {
	if c.State == Done {
		d.count.done.Add(1)
		d.Log.DebugContext(ctx, "catalog compiled", "node", c.Node, "environment", c.Environment,
			"compilation", c.ID, "catalog", c.Catalog.Short(), "wall", c.Cost.Wall, "cpu", c.Cost.CPU)
	} else {
		d.count.failed.Add(1)
		d.Log.InfoContext(ctx, "catalog does not compile", "node", c.Node, "environment", c.Environment,
			"compilation", c.ID, "cause", c.Err.Cause, "err", c.Err)
	}
	d.slow.look(ctx, d.Turns, c, d.Log)
	if d.Finished != nil {
		d.Finished(c)
	}
}
