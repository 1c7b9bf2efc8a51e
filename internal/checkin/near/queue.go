package near

import (
	"bytes"
	"encoding/gob"
	"time"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Kind is what a piece is.
type Kind string

// The kinds.
const (
	Report     Kind = "report"     // of a run
	Facts      Kind = "facts"      // that came with a run
	Submission Kind = "submission" // facts that a node's agent submitted
	Events     Kind = "events"     // of a run
)

// Piece is something that a node sent and that was acknowledged.
type Piece struct {
	Number uint64 // in the order in which they came; a queue gives it
	Kind   Kind
	Node   fleet.Certname
	At     time.Time // when it came, by this server's clock
	Body   []byte
}

// Load is what is queued.
type Load struct {
	Pieces int
	Bytes  int64     // that they take
	Oldest time.Time // when the first of them came; zero: none waits

	Aside      int   // pieces that the records refused for good
	AsideBytes int64 // that they take
}

// Refused is a piece that the records refused for good.
type Refused struct {
	Piece
	Why   string
	Bytes int64 // that it takes
}

// Content is what a piece holds, in the form in which the records would have had it.
func (p Piece) Content() (any, error) {
	switch p.Kind {
	case Report:
		return content[inventory.Report](p)
	case Facts:
		return content[inventory.FactSet](p)
	case Submission:
		return content[factqueue.Set](p)
	case Events:
		return content[event.Batch](p)
	}
	return nil, fault.New(fault.Invalid, "this program knows no %q: a newer one queued it", p.Kind)
}

func content[T any](p Piece) (T, error) {
	v, err := unpack[T](p.Body)
	if err != nil {
		err = unreadable(p, err)
	}
	return v, err
}

// Queue keeps pieces on this server's own disk, in the order in which they came. Methods may be called concurrently.
type Queue interface {
	// Add keeps a piece. When it returns, the piece survives a crash. Unavailable when the queue is full, or the disk.
	Add(p Piece) error
	// Next is the first pieces whose numbers are above after, at most n.
	Next(after uint64, n int) ([]Piece, error)
	// Remove forgets pieces that are stored elsewhere. Those that are gone are no error.
	Remove(numbers []uint64) error
	// SetAside takes a piece out of the queue, and keeps it with the reason. One that is gone is no error.
	SetAside(number uint64, why string) error
	// Load is what is queued.
	Load() Load
}

// pack makes the body of a piece. What is raw JSON stays byte for byte what it was: reports are known by their digest.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func unpack[T any](body []byte) (v T, err error) {
	err = gob.NewDecoder(bytes.NewReader(body)).Decode(&v)
	return v, err
}
