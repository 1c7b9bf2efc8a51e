package rbac

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Outcome is what became of an act.
type Outcome string

// The outcomes.
const (
	Started Outcome = "started" // the end was not seen
	Done    Outcome = "done"
	Failed  Outcome = "failed" // it was allowed, and did not work
	Denied  Outcome = "denied"
)

// Entry is one line of the audit log.
type Entry struct {
	ID        int64
	At        time.Time
	ActorKind fleet.ActorKind
	Actor     string
	Token     string // id
	Operation string // of api.Operations, or METHOD /path/ of another protocol
	Object    string // names from the request
	Remote    string // address
	RequestID string
	Outcome   Outcome
	Detail    string // why not
	Mark      Mark
}

// Mark sets an entry apart.
type Mark string

// BreakGlass marks what was done with the token in the data directory.
const BreakGlass Mark = "break-glass"

// EntryFilter chooses entries. Empty fields choose all.
type EntryFilter struct {
	Actor     string
	Operation string // ending in *: by its beginning
	Since     time.Time
	Until     time.Time
	Failing   bool // only failed and denied
	Outcome   Outcome
	Before    int64 // entries with smaller ids; 0: from the newest
	Limit     int   // at least 1
}

// AuditStore keeps the audit log. Methods may be called concurrently.
type AuditStore interface {
	// RecordAct stores an entry and its lines of the chain (ChainEnd.Record), and returns its id. Ids grow with time.
	RecordAct(ctx context.Context, e Entry) (int64, error)
	// FinishAct sets the outcome and detail of an entry that has started, and adds their line (ChainEnd.Finish).
	FinishAct(ctx context.Context, id int64, outcome Outcome, detail string, at time.Time) error
	// Acts lists entries, newest first.
	Acts(ctx context.Context, f EntryFilter) ([]Entry, error)
	// PruneActs forgets the oldest lines as Forgotten says, and the entries that no other line is of; it counts those. A line
	// says that they were there (ChainEnd.Prune).
	PruneActs(ctx context.Context, before, now time.Time) (int, error)
	ChainStore
}

// ChainStore keeps the chain of the audit log. Lines have no gaps, whoever writes at the same time.
type ChainStore interface {
	// ChainPage is lines after the one with the number "after", as of one moment.
	ChainPage(ctx context.Context, after int64, limit int) (ChainPage, error)
	// LineBefore is the number of the newest line from before a time, 0 when there is none.
	LineBefore(ctx context.Context, at time.Time) (int64, error)
	// Unchained is the first entry that has no line for what it says now, though the chain had begun when it was recorded. 0: there is none.
	Unchained(ctx context.Context) (int64, error)
	// SaveHead stores a head, if its line has none yet.
	SaveHead(ctx context.Context, h Head) error
	// LastHead is the one of the newest line that has one, and the end of the chain, as of one moment.
	LastHead(ctx context.Context) (Head, ChainEnd, error)
}

// ChainPage is some lines with what they are of.
type ChainPage struct {
	Lines []ChainLine // in order, at most as many as asked for
	Heads []Head      // in order, of these lines; and of all later ones, if there are no more lines
	End   ChainEnd
}

// ChainLine is a line and its entry as it is now.
type ChainLine struct {
	Line
	Entry Entry // without an id: there is none
}

// Audit records acts. It may be used by many at once.
type Audit struct {
	store AuditStore
	log   *slog.Logger

	mu     sync.Mutex
	minute time.Time // of strangers
	strangers,
	leftOut int
}

// NewAudit returns an Audit over a store.
func NewAudit(store AuditStore, log *slog.Logger) *Audit { return &Audit{store: store, log: log} }

// Begin records an act that is about to be done. If it returns an error, the act
// must not be done.
func (a *Audit) Begin(ctx context.Context, e Entry) (finish func(error), err error) {
	e.Outcome = Started
	id, err := a.store.RecordAct(ctx, bounded(e))
	if err != nil {
		return nil, unrecorded(err)
	}
	return func(result error) {
		outcome := Done
		switch {
		case fault.Of(result) == fault.Denied && result != nil:
			outcome = Denied
		case result != nil:
			outcome = Failed
		}
		// The caller may be gone; the outcome is to be known all the same.
		if err := a.store.FinishAct(context.WithoutCancel(ctx), id, outcome, detailOf(result), time.Now()); err != nil {
			a.log.ErrorContext(ctx, "outcome not recorded in the audit log", "entry", id, "outcome", outcome, "request_id", e.RequestID, "err", err)
		}
	}, nil
}

// unrecorded says why an act is not done; the store's reason and when to come back
// are kept.
func unrecorded(err error) error {
	detail := "nothing was done, because it could not be recorded in the audit log"
	if fault.Of(err) != fault.Unavailable {
		return fault.Wrap(fault.Internal, err, "%s", detail)
	}
	return &fault.Error{Kind: fault.Unavailable, Detail: detail + ": " + fault.Detail(err), RetryAfter: fault.RetryAfter(err), Err: err}
}

// Refused records a refusal. That it cannot be recorded is logged: there is
// nothing to refuse any more.
func (a *Audit) Refused(ctx context.Context, e Entry, why error) {
	e.Outcome, e.Detail = Denied, detailOf(why)
	if e.ActorKind == fleet.Anonymous && !a.room(&e) {
		return
	}
	if _, err := a.store.RecordAct(context.WithoutCancel(ctx), bounded(e)); err != nil {
		a.log.ErrorContext(ctx, "refusal not recorded in the audit log", "operation", e.Operation, "actor", e.Actor, "request_id", e.RequestID, "err", err)
	}
}

// maxStrangers is how many refusals of callers who proved nothing are recorded a minute.
const maxStrangers = 100

// room says whether a stranger's refusal may still be recorded in this minute;
// the first of the next one tells how many were not.
func (a *Audit) room(e *Entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if minute := e.At.Truncate(time.Minute); !minute.Equal(a.minute) {
		if a.leftOut > 0 {
			e.Detail += fault.Detail(fault.New(fault.Denied, " (before this one, %s had no place in the log)", fault.Count(a.leftOut, "more refusal")))
		}
		a.minute, a.strangers, a.leftOut = minute, 0, 0
	}
	if a.strangers >= maxStrangers {
		a.leftOut++
		return false
	}
	a.strangers++
	return true
}

// detailOf is what may be shown of an error.
func detailOf(err error) string {
	if err == nil {
		return ""
	}
	if detail := fault.Detail(err); detail != "" {
		return detail
	}
	return "the server made a mistake; its log names the cause under the request's id"
}

// Bounds of an entry's texts, in bytes.
const (
	maxDetail = 500
	maxObject = 300
)

// bounded keeps what strangers send from growing the log, and from breaking lines.
func bounded(e Entry) Entry {
	e.Object, e.Detail = clean(e.Object, maxObject), clean(e.Detail, maxDetail)
	e.Operation, e.Remote, e.Actor = clean(e.Operation, 200), clean(e.Remote, 100), clean(e.Actor, 300)
	e.Token, e.RequestID = clean(e.Token, 100), clean(e.RequestID, 100)
	return e
}

func clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
	}
	return text
}
