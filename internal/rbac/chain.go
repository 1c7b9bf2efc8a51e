package rbac

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// LineKind is what a line of the chain says.
type LineKind string

// The kinds of lines.
const (
	LineOpened  LineKind = "opened"  // the first one: entries up to Act were recorded before there was a chain
	LineStarted LineKind = "started" // an entry whose outcome is to come
	LineWhole   LineKind = "whole"   // an entry with its outcome
	LineEnded   LineKind = "ended"   // the outcome of an entry
	LinePruned  LineKind = "pruned"  // lines up to Upto, whose digest was Through, were forgotten; so were entries up to Act
)

// Line is one of the chain. What it says of an entry is in the entry.
type Line struct {
	Seq     int64
	Kind    LineKind
	Act     int64 // the entry's id
	At      time.Time
	Upto    int64
	Through string

	Previous string // digest of the line before
	Digest   string // of its text, in hex
}

// LineText is what a line's digest is of, in JSON: the form that is exported, too. Its bytes never change
// once they were digested: a field is only ever added with omitempty.
type LineText struct {
	Seq       int64    `json:"seq"`
	Previous  string   `json:"previous"` // digest of the line before; empty for the first
	Kind      LineKind `json:"kind"`
	At        string   `json:"at"`
	Entry     int64    `json:"entry,omitempty"`
	Upto      int64    `json:"upto,omitempty"`
	Through   string   `json:"through,omitempty"`
	ActorKind string   `json:"actor_kind,omitempty"`
	Actor     string   `json:"actor,omitempty"`
	Token     string   `json:"token,omitempty"`
	Operation string   `json:"operation,omitempty"`
	Object    string   `json:"object,omitempty"`
	Remote    string   `json:"remote,omitempty"`
	RequestID string   `json:"request_id,omitempty"`
	Mark      Mark     `json:"mark,omitempty"`
	Outcome   Outcome  `json:"outcome,omitempty"`
	Detail    string   `json:"detail,omitempty"`
}

// momentOf is a time as it is digested, and as stores keep it: to the microsecond.
func momentOf(at time.Time) string {
	return at.UTC().Truncate(time.Microsecond).Format("2006-01-02T15:04:05.000000Z")
}

// records says whether a line of this kind is of an entry as it was recorded.
func (k LineKind) records() bool { return k == LineStarted || k == LineWhole }

// ofEntry says whether a line of this kind is of an entry.
func (k LineKind) ofEntry() bool { return k.records() || k == LineEnded }

// Text is what the line's digest is of. What is of no use to its kind is not looked at in the entry.
func (l Line) Text(e Entry) []byte {
	t := LineText{Seq: l.Seq, Previous: l.Previous, Kind: l.Kind, At: momentOf(l.At), Entry: l.Act, Upto: l.Upto, Through: l.Through}
	if l.Kind.records() {
		t.At = momentOf(e.At)
		t.ActorKind, t.Actor, t.Token, t.Operation, t.Object = string(e.ActorKind), e.Actor, e.Token, e.Operation, e.Object
		t.Remote, t.RequestID, t.Mark = e.Remote, e.RequestID, e.Mark
	}
	switch l.Kind {
	case LineStarted:
		t.Outcome = Started
	case LineWhole, LineEnded:
		t.Outcome, t.Detail = e.Outcome, e.Detail
	case LineOpened, LinePruned:
	}
	text, _ := json.Marshal(t) // strings and numbers can be written
	return text
}

// DigestOf is the digest of a line's text.
func DigestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ChainEnd is the newest line; the zero value is a chain without any.
type ChainEnd struct {
	Seq    int64
	Digest string
}

// Next puts a line behind the end and moves the end to it.
func (c *ChainEnd) Next(l Line, e Entry) Line {
	l.Seq, l.Previous = c.Seq+1, c.Digest
	l.Digest = DigestOf(l.Text(e))
	*c = ChainEnd{Seq: l.Seq, Digest: l.Digest}
	return l
}

// Record gives the lines of an entry that was just recorded: before the first one of all there is one that opens the
// chain, and says that entries up to "last" were there already.
func (c *ChainEnd) Record(e Entry, last int64) (lines []Line) {
	if c.Seq == 0 {
		lines = append(lines, c.Next(Line{Kind: LineOpened, Act: last, At: e.At}, Entry{}))
	}
	kind := LineWhole
	if e.Outcome == Started {
		kind = LineStarted
	}
	return append(lines, c.Next(Line{Kind: kind, Act: e.ID, At: e.At}, e))
}

// Finish gives the line of an outcome that was just set. An entry has one outcome: a second is a Conflict.
func (c *ChainEnd) Finish(before Outcome, e Entry, at time.Time) (Line, error) {
	if before != Started {
		return Line{}, fault.New(fault.Conflict, "entry %d of the audit log has its outcome already: %s", e.ID, before)
	}
	return c.Next(Line{Kind: LineEnded, Act: e.ID, At: at}, e), nil
}

// Forgotten is how many of the oldest lines are from before a time: those after the first that is not stay, whatever their
// time, for a chain can only be cut at its beginning.
func Forgotten(oldest []Line, before time.Time) int {
	for i, l := range oldest {
		if !l.At.Before(before) {
			return i
		}
	}
	return len(oldest)
}

// Prune gives the line that says that all up to the line "last" are forgotten. Entries up to "unchained" are from before the chain.
func (c *ChainEnd) Prune(last Line, unchained int64, at time.Time) Line {
	return c.Next(Line{Kind: LinePruned, Act: unchained, Upto: last.Seq, Through: last.Digest, At: at}, Entry{})
}

// Head is the CA's signature over a line: what came up to it cannot be changed by anybody who has not that key.
type Head struct {
	Seq       int64
	Digest    string
	At        time.Time
	Signer    string // SHA-256 of the CA's certificate, in hex
	Signature []byte
}

// Text is what is signed.
func (h Head) Text() []byte {
	return fmt.Appendf(nil, "tutti audit head\n%d\n%s\n%s\n", h.Seq, h.Digest, h.At.UTC().Format(time.RFC3339))
}

// Checked is what was found of a chain.
type Checked struct {
	First, Last   int64 // lines
	Lines, Heads  int
	SignedThrough int64 // the line of the newest head that is good
	Digest        string
}

// Checker looks at a chain line by line, in order, and at the heads behind their lines.
type Checker struct {
	// Good tells whether a head's signature is one of the CA.
	Good func(Head) error

	found  Checked
	pruned bool   // a line says where the chain begins now
	start  string // digest of the line before the first
	digest string
}

func broken(seq int64, format string, args ...any) error {
	return &BrokenChain{Seq: seq, What: fmt.Sprintf(format, args...)}
}

// BrokenChain is what is wrong, and where.
type BrokenChain struct {
	Seq  int64
	What string
}

func (b *BrokenChain) Error() string { return fmt.Sprintf("line %d: %s", b.Seq, b.What) }

// Line looks at the next line: its text, and the digest that it is said to have.
func (c *Checker) Line(text []byte, digest string) (LineText, error) {
	var t LineText
	if err := json.Unmarshal(text, &t); err != nil {
		return t, broken(c.found.Last+1, "its text cannot be read: %v", err)
	}
	switch {
	case t.Seq <= 0:
		return t, broken(t.Seq, "a number of a line is 1 or more")
	case c.found.Lines == 0:
		c.found.First, c.start = t.Seq, t.Previous
		if t.Seq == 1 && (t.Previous != "" || t.Kind != LineOpened) {
			return t, broken(t.Seq, "it is no beginning of a chain")
		}
	case t.Seq != c.found.Last+1:
		return t, broken(c.found.Last+1, "it is missing: line %d comes after line %d", t.Seq, c.found.Last)
	case t.Previous != c.digest:
		return t, broken(t.Seq, "it was not made after the line before it, which was changed or exchanged")
	}
	if got := DigestOf(text); got != digest {
		return t, broken(t.Seq, "it was changed: its digest is not the one that was noted (%s of entry %d)", t.Kind, t.Entry)
	}
	if t.Kind == LinePruned && t.Upto == c.found.First-1 {
		if t.Through != c.start {
			return t, broken(c.found.First, "it was not made after the line that was forgotten before it")
		}
		c.pruned = true
	}
	c.found.Lines++
	c.found.Last, c.digest = t.Seq, digest
	return t, nil
}

// Head looks at a head of the line that came last.
func (c *Checker) Head(h Head) error {
	switch {
	case h.Seq > c.found.Last:
		return broken(c.found.Last+1, "it is missing: a head of line %d was signed at %s", h.Seq, h.At.UTC().Format(time.RFC3339))
	case h.Seq < c.found.Last:
		return broken(h.Seq, "its head comes too late")
	case h.Seq == c.found.SignedThrough:
		return broken(h.Seq, "it has two heads")
	case h.Digest != c.digest:
		return broken(h.Seq, "it is not the line whose head was signed at %s: lines up to it were written anew", h.At.UTC().Format(time.RFC3339))
	}
	if err := c.Good(h); err != nil {
		return broken(h.Seq, "the signature of its head is not good: %v", err)
	}
	c.found.Heads++
	c.found.SignedThrough = h.Seq
	return nil
}

// End says what was found when all of a chain has been looked at. A part of one begins where it was told to.
func (c *Checker) End(end ChainEnd, part bool) (Checked, error) {
	c.found.Digest = c.digest
	switch {
	case end.Seq != c.found.Last:
		return c.found, broken(min(end.Seq, c.found.Last)+1, "the chain ends with line %d, not %d", end.Seq, c.found.Last)
	case end.Digest != c.digest:
		return c.found, broken(end.Seq, "the end of the chain has another digest")
	case c.found.Lines > 0 && c.found.First > 1 && !c.pruned && !part:
		return c.found, broken(c.found.First-1, "it is missing, and no line says that it was forgotten")
	}
	return c.found, nil
}
