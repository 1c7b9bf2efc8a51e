package compile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
)

// product is what an attempt gave: its row as it should be finished.
type product struct {
	Compilation
	result *Result // a fresh catalog and what can be asked about it; nil: a stored one was used again
}

// attempt compiles c and finishes its row. What it returns is how long the row
// has to rest before it is tried again; zero when there is nothing left to do.
func (d *Dispatcher) attempt(ctx context.Context, c Compilation) (rest time.Duration) {
	return d.try(ctx, c, func(ctx context.Context) (product, error) { return d.produce(ctx, c) })
}

// try finishes the row of c with what work gives.
func (d *Dispatcher) try(ctx context.Context, c Compilation, work func(context.Context) (product, error)) (rest time.Duration) {
	began := time.Now()
	made, err := d.compile(ctx, work)
	c.FactsSeq = max(c.FactsSeq, made.FactsSeq)
	d.count.wall.Add(int64(time.Since(began)))
	log := d.Log.With("node", c.Node, "environment", c.Environment, "compilation", c.ID, "attempt", c.Attempts)
	switch failed := asError(err); {
	case ctx.Err() != nil:
		d.count.lost.Add(1)
		log.InfoContext(ctx, "compilation stopped: its lease is lost or the server stops")
		return 0
	case err == nil:
		c = made.Compilation
	case failed != nil:
		c = asFailed(c, failed)
	case c.Attempts >= d.cfg.MaxAttempts:
		log.ErrorContext(ctx, "compilation could not be tried, giving up", "err", err)
		c = asFailed(c, gaveUp(c.Attempts, err))
	default:
		d.count.retried.Add(1)
		rest = backoff(c.Attempts)
		log.WarnContext(ctx, "compilation could not be tried, will retry", "rest", rest, "err", err)
		return rest
	}
	if err = d.finish(ctx, c); errors.Is(err, ErrUnstaged) {
		made.Staged = false
		return d.try(ctx, c, func(ctx context.Context) (product, error) { return d.unstage(ctx, made) })
	}
	if err != nil {
		d.count.lost.Add(1)
		log.WarnContext(ctx, "compilation ended but its row did not take it, the result is thrown away", "err", err)
		return 0 // held by nobody, or by a lease that runs out
	}
	d.tell(ctx, c)
	return 0
}

// compile does work within its time and returns what it made, or why there is no
// catalog.
func (d *Dispatcher) compile(parent context.Context, work func(context.Context) (product, error)) (product, error) {
	ctx, cancel := context.WithTimeout(parent, d.cfg.Timeout)
	defer cancel()
	made, err := work(ctx)
	if err != nil && asError(err) == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && parent.Err() == nil {
		err = &Error{Cause: CauseTimeout, Message: fmt.Sprintf("the compilation took longer than %s", d.cfg.Timeout)}
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
	outcome, err := d.Compiler.Compile(ctx, order)
	if err != nil {
		return made, err
	}
	document, used, err := d.document(ctx, c, outcome)
	if err != nil {
		return made, err
	}
	if c.Catalog, err = d.Documents.SaveDocument(ctx, document); err != nil {
		return made, fmt.Errorf("store the catalog: %w", err)
	}
	c.State, c.FinishedAt, c.UUID, c.Cost = Done, time.Now(), uuid.NewString(), outcome.Cost
	c.Inputs = newInputSet(d.Compiler.Engine(), order, outcome, used)
	check.compare(ctx, order, c, document)
	made.Compilation = c
	made.result = &Result{Compilation: c, Document: document, Collected: outcome.Collected, Logs: outcome.Logs}
	return made, d.publish(ctx, made)
}

// publish makes the catalog its node's newest, unless it is staged.
func (d *Dispatcher) publish(ctx context.Context, made product) error {
	if made.Staged || d.Results == nil {
		return nil
	}
	if err := d.Results.SaveCatalog(ctx, *made.result); err != nil {
		return fmt.Errorf("store the catalog's resources: %w", err)
	}
	return nil
}

// unstage goes on with what was made staged and is wanted plain by now.
func (d *Dispatcher) unstage(ctx context.Context, made product) (product, error) {
	if made.result == nil {
		return d.produce(ctx, made.Compilation)
	}
	made.result.Compilation.Staged = false
	return made, d.publish(ctx, made)
}

// reuse ends c with the catalog that is stored, if that stands. Its row then only
// points to it.
func (d *Dispatcher) reuse(ctx context.Context, c Compilation) (Compilation, bool) {
	if d.Reuser == nil || c.Checks != 0 {
		return c, false
	}
	found, ok := d.Reuser.Find(ctx, Wish{
		Node: c.Node, Environment: c.Environment, Version: c.Version, Trusted: c.Trusted, Transaction: c.Transaction, Priority: c.Priority,
		Staged: c.Staged,
	})
	if ok {
		c.State, c.FinishedAt, c.FactsSeq, c.Catalog, c.UUID = Done, time.Now(), max(c.FactsSeq, found.FactsSeq), found.Catalog, found.UUID
		c.Inputs = found.Inputs
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
		if fault.Of(err) == fault.Invalid && err != nil { // as with a source that does not exist: it stays wrong
			return nil, used, &Error{Cause: CauseCode, Message: fault.Detail(err), Logs: o.Logs}
		}
		if err != nil {
			return nil, used, fmt.Errorf("inline file metadata: %w", err)
		}
		o.Catalog = json.RawMessage(inlined)
	}
	document, _, err = Normalise(o)
	if err != nil {
		return nil, used, &Error{Cause: CauseCrash, Message: fault.Detail(err), Logs: o.Logs}
	}
	return document, used, nil
}

func asFailed(c Compilation, err *Error) Compilation {
	c.State, c.FinishedAt, c.Err = Failed, time.Now(), err
	c.Catalog, c.UUID = "", ""
	return c
}

// gaveUp is the error of a row that could not even be tried.
func gaveUp(attempts int, err error) *Error {
	why := fault.Detail(err)
	if why == "" {
		why = "the server's log says why"
	}
	return &Error{Cause: CauseCrash, Message: fmt.Sprintf("the compilation could not be done in %d attempts: %s", attempts, why)}
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
	if d.Finished != nil {
		d.Finished(c)
	}
}
