package rbac

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Seal is the CA, as far as heads of the chain need it.
type Seal interface {
	// SignAudit signs a head's text; signer names the certificate whose key it was.
	SignAudit(text []byte) (signer string, signature []byte, err error)
	// CheckAudit tells whether a signature is good.
	CheckAudit(signer string, text, signature []byte) error
}

// Chain looks after the chain of the audit log. It may be used by many at once.
type Chain struct {
	store ChainStore
	seal  Seal
	log   *slog.Logger
	turn  chan struct{} // holds a token while somebody verifies
}

// NewChain returns a Chain over a store.
func NewChain(store ChainStore, seal Seal, log *slog.Logger) *Chain {
	return &Chain{store: store, seal: seal, log: log, turn: make(chan struct{}, 1)}
}

// How often heads are signed, and how long the last one may take when the server ends.
const (
	headEvery   = time.Hour
	lastHeadMay = 5 * time.Second
)

// Run signs a head at the start, every hour, and when ctx is done.
func (c *Chain) Run(ctx context.Context) error {
	tick := time.NewTicker(headEvery)
	defer tick.Stop()
	for {
		c.sign(ctx)
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastHeadMay)
			c.sign(last)
			cancel()
			return nil
		case <-tick.C:
		}
	}
}

func (c *Chain) sign(ctx context.Context) {
	if _, err := c.Sign(ctx, time.Now()); err != nil && ctx.Err() == nil {
		c.log.ErrorContext(ctx, "head of the audit log not signed, will retry", "err", err)
	}
}

// Sign signs a head of the newest line, unless there is one. The log of the server names it, so that it is known outside of the
// database, too.
func (c *Chain) Sign(ctx context.Context, now time.Time) (Head, error) {
	last, end, err := c.store.LastHead(ctx)
	if err != nil || end.Seq == last.Seq {
		return last, err
	}
	if end.Seq < last.Seq {
		return last, fault.New(fault.Conflict, "the audit log ends with line %d, but a head of line %d was signed: see `tutti audit verify`", end.Seq, last.Seq)
	}
	h := Head{Seq: end.Seq, Digest: end.Digest, At: now.UTC().Truncate(time.Second)}
	if h.Signer, h.Signature, err = c.seal.SignAudit(h.Text()); err != nil {
		return h, err
	}
	if err := c.store.SaveHead(ctx, h); err != nil {
		return h, err
	}
	c.log.InfoContext(ctx, "head of the audit log signed", "line", h.Seq, "digest", h.Digest)
	return h, nil
}

// checkPage is how many lines are read at once.
const checkPage = 1000

// Verify reads the whole chain and the whole log. What is wrong is a BrokenChain. If known is not zero, its line must have its digest: what
// somebody wrote down elsewhere. One at a time: another one is Unavailable.
func (c *Chain) Verify(ctx context.Context, known ChainEnd) (Checked, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	default:
		return Checked{}, fault.Later(10*time.Second, "the audit log is being verified already")
	}
	check := Checker{Good: func(h Head) error { return c.seal.CheckAudit(h.Signer, h.Text(), h.Signature) }}
	seen := known.Seq == 0
	for {
		page, err := c.store.ChainPage(ctx, check.found.Last, checkPage)
		if err != nil {
			return check.found, err
		}
		for _, l := range page.Lines {
			if l.Seq == known.Seq {
				if seen = l.Digest == known.Digest; !seen {
					return check.found, broken(l.Seq, "it has not the digest that is known of it")
				}
			}
		}
		if err := check.page(page); err != nil {
			return check.found, c.unlessPruned(ctx, &check, err)
		}
		if len(page.Lines) < checkPage {
			if found, err := check.End(page.End, false); err != nil {
				return found, err
			}
			break
		}
	}
	switch {
	case !seen && known.Seq > check.found.Last:
		return check.found, broken(check.found.Last+1, "it is missing: line %d was known", known.Seq)
	case !seen:
		return check.found, fault.New(fault.Invalid, "line %d was forgotten already (audit_retention): compare a newer one", known.Seq)
	}
	id, err := c.store.Unchained(ctx)
	if err == nil && id > 0 {
		return check.found, broken(check.found.Last, "no line says what entry %d says: it was put there or changed past the chain", id)
	}
	return check.found, err
}

// page looks at lines with their entries, and the heads among them.
func (c *Checker) page(page ChainPage) error {
	heads := page.Heads
	for _, l := range page.Lines {
		if err := c.stored(l); err != nil {
			return err
		}
		for len(heads) > 0 && heads[0].Seq <= l.Seq {
			if err := c.Head(heads[0]); err != nil {
				return err
			}
			heads = heads[1:]
		}
	}
	if len(heads) > 0 {
		return c.Head(heads[0]) // of a line that is not there
	}
	return nil
}

// stored looks at a line as a store has it.
func (c *Checker) stored(l ChainLine) error {
	switch {
	case l.Kind.ofEntry() && l.Entry.ID == 0 && l.Seq == c.found.Last+1:
		return broken(l.Seq, "its entry %d was deleted from the log", l.Act)
	case l.Kind.records() && l.Entry.ID != 0 && !l.Entry.At.Equal(l.At):
		return broken(l.Seq, "the time of its entry %d was changed", l.Act)
	}
	_, err := c.Line(l.Text(l.Entry), l.Digest)
	return err
}

// unlessPruned tells a gap from lines that were forgotten while somebody read.
func (c *Chain) unlessPruned(ctx context.Context, check *Checker, err error) error {
	if _, ok := errors.AsType[*BrokenChain](err); !ok {
		return err
	}
	first, readErr := c.store.ChainPage(ctx, 0, 1)
	if readErr != nil {
		return readErr
	}
	if check.found.First > 0 && len(first.Lines) > 0 && first.Lines[0].Seq > check.found.First {
		return fault.Later(time.Second, "old lines of the audit log were forgotten meanwhile: ask again")
	}
	return err
}

// Page is lines of the chain after one of them, or after all that are from before a time, as they are exported.
func (c *Chain) Page(ctx context.Context, after int64, since time.Time, limit int) (ChainPage, error) {
	if !since.IsZero() && after == 0 {
		var err error
		if after, err = c.store.LineBefore(ctx, since); err != nil {
			return ChainPage{}, err
		}
	}
	return c.store.ChainPage(ctx, after, limit)
}
