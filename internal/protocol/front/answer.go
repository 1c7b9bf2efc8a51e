package front

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"strconv"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/protocol/tls"
)

// answer watches what a handler answers.
type answer struct {
	http.ResponseWriter
	r      *http.Request
	status int
	bytes  int64
	begun  bool
	// comesBack is whether the client can follow a Retry-After. Agents that cannot end their
	// run over it with an error of their own; without it they show the server's.
	comesBack bool
	problem   func(path string, p api.Problem) any // see Config.Problem
	refused   func()                               // is told of a 401 or 403; may be nil
	id        string                               // of the request
	body      *body                                // of the request; may be nil
	replaced  bool                                 // the answer is the body's refusal; what the handler writes is thrown away
}

func (a *answer) WriteHeader(status int) {
	if (status == http.StatusForbidden || status == http.StatusUnauthorized) && !a.begun && a.refused != nil {
		a.refused()
	}
	if status >= http.StatusBadRequest && !a.begun && a.body != nil && a.body.refused != nil {
		a.tellBody()
		return
	}
	if !a.begun {
		a.status, a.begun = status, true
	}
	if !a.comesBack {
		a.Header().Del("Retry-After")
	}
	a.ResponseWriter.WriteHeader(status)
}

// tellBody answers with why no more of the body was read: the handler knows only that it could not be.
func (a *answer) tellBody() {
	a.replaced, a.begun, a.status = true, true, a.body.status
	why := a.body.refused
	told := api.Problem{Kind: fault.Of(why).String(), Message: fault.Detail(why), RequestID: a.id, RetryAfter: api.RetrySeconds(why)}
	text, _ := json.Marshal(a.problem(a.r.URL.Path, told)) // words always encode
	head := a.Header()
	for _, name := range []string{"Content-Encoding", "Retry-After", "WWW-Authenticate"} {
		head.Del(name)
	}
	head.Set("Content-Type", "application/json")
	head.Set("Content-Length", strconv.Itoa(len(text)))
	if told.RetryAfter > 0 && a.comesBack {
		head.Set("Retry-After", strconv.FormatInt(told.RetryAfter, 10))
	}
	a.ResponseWriter.WriteHeader(a.status)
	n, _ := a.ResponseWriter.Write(text) // the caller is gone if this fails
	a.bytes += int64(n)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.replaced {
		return len(p), nil
	}
	a.begun = true
	write := a.ResponseWriter.Write
	if a.isWhole(p) {
		write = a.writeWhole
	}
	n, err := write(p)
	a.bytes += int64(n)
	return n, err
}

// bufferedAnyway is what surely leaves in one piece with its head: net/http
// buffers 4 KB.
const bufferedAnyway = 2 << 10

// isWhole tells that p is all there will be of the body.
func (a *answer) isWhole(p []byte) bool {
	length := a.Header()["Content-Length"]
	return a.bytes == 0 && len(p) > bufferedAnyway && len(length) == 1 && length[0] == strconv.Itoa(len(p))
}

func (a *answer) writeWhole(p []byte) (int, error) {
	return tls.WriteWhole(a.ResponseWriter, a.r, p)
}

// Hijack hands over the connection, as to a websocket.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.status, a.begun = http.StatusSwitchingProtocols, true
	}
	return conn, buffered, err
}

// Unwrap lets http.ResponseController reach the real writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
