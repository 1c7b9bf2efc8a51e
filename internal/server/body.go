package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTime is how long a request's body may take to arrive, unless its handler
// says otherwise. Strangers may send bodies, too: without a bound they could keep
// connections for ever.
const bodyTime = time.Minute

// body is a request's body whose deadline ends with it: one that stayed would
// cancel a handler that takes longer than the body was allowed to.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

// boundBody sets the deadline of a body, if there is one.
func boundBody(w http.ResponseWriter, from io.ReadCloser) io.ReadCloser {
	if from == nil || from == http.NoBody {
		return from
	}
	b := &body{from, http.NewResponseController(w)}
	_ = b.control.SetReadDeadline(time.Now().Add(bodyTime)) // every connection of a server can
	return b
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
