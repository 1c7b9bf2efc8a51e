package httpapi

import (
	"io"
	"net/http"
	"time"
)

// pieceTime is how long the next piece of a body may take. A whole upload may
// take long, as long as it keeps coming.
const pieceTime = time.Minute

// paced is the body of somebody who may send it.
type paced struct {
	io.ReadCloser
	control *http.ResponseController
}

func (p paced) Read(buf []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(pieceTime)) // a connection that cannot has bounds of its own
	return p.ReadCloser.Read(buf)
}
