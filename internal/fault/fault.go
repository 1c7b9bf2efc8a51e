// Package fault names the few kinds of error that callers handle differently.
//
// Every error that crosses a package border either is a fault.Error or counts as Internal. HTTP, the command
// line and the wire protocol each translate a Kind with one table. The numbers of kinds are sent on the wire,
// so new kinds are only ever appended.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what a caller can do about an error.
type Kind uint8

// The kinds, in the order of their wire numbers.
const (
	Internal    Kind = iota // nothing: it is our mistake, and the log knows more
	Invalid                 // mend the request
	NotFound                // name something that exists
	Denied                  // show who you are, or ask for the right
	Conflict                // look again at what is there now
	Unavailable             // try again later
)

var names = [...]string{"internal", "invalid", "not_found", "denied", "conflict", "unavailable"}

func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return names[Internal]
}

// ParseKind is the inverse of String; an unknown word is Internal.
func ParseKind(s string) Kind {
	for i, name := range names {
		if name == s {
			return Kind(i)
		}
	}
	return Internal
}

// Error is an error that somebody outside may read.
type Error struct {
	Kind       Kind
	Detail     string        // one sentence for people, safe to show: what, and why
	Hint       string        // what to do next, safe to show; empty: Detail says it, or nothing is known
	RetryAfter time.Duration // with Unavailable: when to come back; zero means unknown
	TooOften   bool          // with Unavailable: the caller itself is the reason
	Err        error         // the cause, for the log
}

func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Detail
	case e.Detail == "":
		return e.Err.Error()
	default:
		return e.Detail + ": " + e.Err.Error()
	}
}

func (e *Error) Unwrap() error { return e.Err }

// New returns a fault of the given kind whose text may be shown.
func New(kind Kind, format string, args ...any) error {
	putInWords(args)
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and a sentence that is safe to show; err itself only
// reaches the log.
func Wrap(kind Kind, err error, format string, args ...any) error {
	putInWords(args)
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...), Err: err}
}

// Later is an Unavailable fault that says when to come back.
func Later(after time.Duration, format string, args ...any) error {
	putInWords(args)
	return &Error{Kind: Unavailable, Detail: fmt.Sprintf(format, args...), RetryAfter: after}
}

// TooOften is a Later fault whose reason is the caller, who did this more often than it may.
func TooOften(after time.Duration, format string, args ...any) error {
	putInWords(args)
	return &Error{Kind: Unavailable, Detail: fmt.Sprintf(format, args...), RetryAfter: after, TooOften: true}
}

// IsTooOften tells whether err is a TooOften fault.
func IsTooOften(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.TooOften
}

// Of returns the kind of err. Unknown errors are Internal: nothing leaks by
// accident.
func Of(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is tells whether err is an error of this kind. Nil is of none.
func Is(err error, kind Kind) bool { return err != nil && Of(err) == kind }

// Detail is the sentence that may be shown for err; empty for an error that is
// nobody's business but ours.
func Detail(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Kind != Internal {
		return e.Detail
	}
	return ""
}

// Hint is what to do next about err; empty when nothing is known.
func Hint(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Kind != Internal {
		return e.Hint
	}
	return ""
}

// RetryAfter is how long to wait before trying again; zero when not known.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
