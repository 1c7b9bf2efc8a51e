package front

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// The bounds of a body in time, from its first byte that is read. The pace of what is
// large keeps a sender from trickling it for ever; the bound follows from its size.
const (
	pieceTime = time.Minute // for the next piece of it
	// BytesASecond is how many bytes of a body have a second besides the setting body_timeout.
	BytesASecond = 64 << 10
)

// The bounds of a body whose sender proved nothing: who logs in, who asks for a certificate.
const (
	strangerTime  = 10 * time.Second
	strangerBytes = pki.MaxRequestBytes + 1<<10 // who asks for a certificate sends most
)

// PieceBytes is how much of a body is read before it is counted.
const PieceBytes = 64 << 10

// drainBytes is how much of a body that is too large may be thrown away.
const drainBytes = 256 << 20

// streamedBytes is what counts of a body that goes to the disk while it comes.
const streamedBytes = 256 << 10

// body is a request's body: bounded in size and time as a whole, counted while it is in
// memory. Its deadline ends with it: one that stayed would cancel a handler that takes
// longer than the body was allowed to. It belongs to the handler's goroutine.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	req     *request
	budget  *Budget
	whole   time.Duration // see the setting body_timeout

	takes Route

	begun  time.Time // of reading it
	read   int64
	held   int64 // of the budget
	theirs int64 // of held, as a stranger
	ended  bool
	// refused is why no more of it is read: the answer says it, whatever the handler makes of it.
	refused error
	status  int
}

// boundBody bounds the body of a request, if it has one. The route that it goes to says how much it takes.
func (h *Handler) boundBody(w http.ResponseWriter, r *http.Request, req *request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	b := &body{ReadCloser: r.Body, control: http.NewResponseController(w), req: req, budget: h.Bodies, whole: h.BodyTime}
	_ = b.control.SetReadDeadline(time.Now().Add(strangerTime)) // every connection of a server can; for who does not read it
	req.body, r.Body = b, b
}

// stranger says whether the sender has proved nothing yet.
func (b *body) stranger() bool { return b.req.actor.Kind == fleet.Anonymous || b.req.actor.Kind == "" }

// deadline is when the next piece, or all of the body, is due.
func (b *body) deadline(now time.Time) time.Time {
	if b.stranger() {
		return b.begun.Add(min(strangerTime, b.whole))
	}
	whole := b.begun.Add(b.whole + time.Duration(b.read/BytesASecond)*time.Second)
	if piece := now.Add(pieceTime); piece.Before(whole) {
		return piece
	}
	return whole
}

func (b *body) limit() int64 {
	switch {
	case b.stranger():
		return min(b.takes.Bytes, max(strangerBytes, b.takes.Strangers))
	case b.takes.Drained:
		return b.takes.Bytes + drainBytes
	}
	return b.takes.Bytes
}

func (b *body) Read(p []byte) (int, error) {
	if b.refused != nil {
		return 0, b.refused
	}
	now := time.Now()
	if b.begun.IsZero() {
		b.begun = now
	}
	limit := b.limit()
	p = p[:min(int64(len(p)), max(limit-b.read, 0)+1, PieceBytes)] // one more than allowed, to see whether there is more
	_ = b.control.SetReadDeadline(b.deadline(now))
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	var timeout net.Error
	switch {
	case b.read > limit:
		return 0, b.refuse(http.StatusRequestEntityTooLarge, fault.New(fault.Invalid, "the body is larger than %d bytes, which is what is taken here", limit))
	case err != nil && (errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()):
		return 0, b.refuse(http.StatusRequestTimeout, fault.Wrap(fault.Unavailable, err,
			"the body was too slow in coming: %d bytes came in %s", b.read, fault.Duration(time.Since(b.begun).Round(time.Second))))
	case errors.Is(err, io.EOF):
		b.ended = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	if err := b.hold(); err != nil {
		return 0, b.refuse(http.StatusServiceUnavailable, err)
	}
	return n, err
}

// refuse ends the body; nothing more of it is read.
func (b *body) refuse(status int, why error) error {
	b.refused, b.status = why, status
	return why
}

// hold counts what was read.
func (b *body) hold() error {
	held := min(b.read, b.takes.Bytes)
	if b.takes.Streamed {
		held = min(held, streamedBytes)
	}
	more := held - b.held
	if more <= 0 {
		return nil
	}
	stranger := b.stranger()
	if err := b.budget.take(more, stranger); err != nil {
		return err
	}
	b.held = held
	if stranger {
		b.theirs += more
	}
	return nil
}

// release gives back what was held, when the request is over.
func (b *body) release() {
	if b.held > 0 {
		b.budget.giveBack(b.held, b.theirs)
	}
	b.held, b.theirs = 0, 0
}
