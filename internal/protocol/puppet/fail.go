package puppet

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// The kinds of issue that errors name beside their text.
const (
	runtimeError         = "RUNTIME_ERROR"
	resourceNotFound     = "RESOURCE_NOT_FOUND"
	handlerNotFound      = "HANDLER_NOT_FOUND"
	missingHeader        = "MISSING_HEADER_FIELD"
	unsupportedFormat    = "UNSUPPORTED_FORMAT"
	unsupportedMethod    = "UNSUPPORTED_METHOD"
	unsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
)

// maxDrain is how much of an unwanted body is read so that its sender gets to
// see the answer.
const maxDrain = 256 * mebibyte

// problem is an error with its place on the wire.
type problem struct {
	status int
	issue  string
	text   string // without the prefix that names the class
}

func (p *problem) Error() string { return p.message() }

// message is the text that the agent prints.
func (p *problem) message() string { return prefixes[p.status] + p.text }

// prefixes start a message by the class of its error, as agents' users know them.
var prefixes = map[int]string{
	http.StatusBadRequest:            "Bad Request: ",
	http.StatusNotFound:              "Not Found: ",
	http.StatusMethodNotAllowed:      "Method Not Allowed: ",
	http.StatusNotAcceptable:         "Not Acceptable: ",
	http.StatusRequestTimeout:        "Request Timeout: ",
	http.StatusConflict:              "Conflict: ",
	http.StatusRequestEntityTooLarge: "Payload Too Large: ",
	http.StatusRequestURITooLong:     "URI Too Long: ",
	http.StatusUnsupportedMediaType:  "Unsupported Media Type: ",
	http.StatusTooManyRequests:       "Too Many Requests: ",
	http.StatusInternalServerError:   "Server Error: ",
	http.StatusServiceUnavailable:    "Service Unavailable: ",
	http.StatusInsufficientStorage:   "Insufficient Storage: ",
}

func problemf(status int, issue, format string, args ...any) error {
	return &problem{status: status, issue: issue, text: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return problemf(http.StatusBadRequest, runtimeError, format, args...)
}

func tooLarge(what string, limit int64) error {
	return problemf(http.StatusRequestEntityTooLarge, runtimeError,
		"%s larger than the %d bytes that this server allows", what, limit)
}

// fail answers with err. It is the one place that logs errors of requests.
func (s *server) fail(c *call, err error) {
	if c.started { // too late for an error: only a broken connection tells
		s.Log.WarnContext(c.ctx(), "answer broken off", "path", c.r.URL.Path, "node", c.actor.Name, "err", err)
		panic(http.ErrAbortHandler)
	}
	if p, ok := errors.AsType[*problem](err); !ok || p.status != http.StatusRequestTimeout {
		c.drain(s.BodyTimeout)
	}
	if errors.Is(err, context.Canceled) && c.ctx().Err() != nil {
		err = fault.Later(time.Second, "the request was given up") // nobody listens any more
	}
	if fault.Of(err) == fault.Denied {
		s.refuse(c, err)
		return
	}
	p := s.problemOf(c, err)
	if p.status >= http.StatusBadRequest && p.status < http.StatusInternalServerError && p.status != http.StatusNotFound {
		s.Log.WarnContext(c.ctx(), "request is wrong", "path", c.r.URL.Path, "node", c.actor.Name, "status", p.status, "err", err)
	}
	c.w.Header().Set("Content-Type", formatJSON.contentType)
	body := p.body()
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(p.status)
	_, _ = c.w.Write(body)
}

// refuse answers 403 the way agents' users know it; the reason is in the log.
func (s *server) refuse(c *call, err error) {
	s.Log.WarnContext(c.ctx(), "request refused", "path", c.r.URL.Path, "method", c.r.Method, "actor", c.actor.Name, "err", err)
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusForbidden)
	_, _ = fmt.Fprintf(c.w, "Forbidden request: %s (method :%s). Please see the server logs for details.",
		printable(c.r.URL.Path), strings.ToLower(c.r.Method))
}

// problemOf finds the place on the wire of any error.
func (s *server) problemOf(c *call, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if compiled, ok := errors.AsType[*compile.Error](err); ok {
		return &problem{http.StatusInternalServerError, runtimeError, strings.TrimPrefix(compiled.Message, "Server Error: ")}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fault.Wrap(fault.Unavailable, err, "the server did not find the time")
	}
	kind := fault.Of(err)
	p := &problem{api.StatusOf(err), runtimeError, fault.Detail(err)}
	switch kind {
	case fault.NotFound:
		p.issue = resourceNotFound
	case fault.Unavailable:
		c.w.Header().Set("Retry-After", s.retryAfter(err))
		s.Log.InfoContext(c.ctx(), "request put off", "path", c.r.URL.Path, "node", c.actor.Name, "err", err)
	case fault.Internal:
		reference := rand.Text()[:8]
		s.Log.ErrorContext(c.ctx(), "request failed", "path", c.r.URL.Path, "node", c.actor.Name, "reference", reference, "err", err)
		p.text = "internal error " + reference + "; the server's log has the cause under this reference"
	case fault.Invalid, fault.Denied, fault.Conflict: // nothing to add
	}
	return p
}

// retryAfter is in whole seconds, at least one.
func (s *server) retryAfter(err error) string {
	after := fault.RetryAfter(err)
	if after <= 0 {
		after = s.Limits.spread()
	}
	return strconv.FormatInt(api.WholeSeconds(after), 10)
}

func (p *problem) body() []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // people read it
	_ = enc.Encode(struct {
		Message string `json:"message"`
		Issue   string `json:"issue_kind"`
	}{p.message(), p.issue}) // two strings always encode
	return bytes.TrimRight(buf.Bytes(), "\n")
}

// drain reads what the client still sends: a stock agent reads the answer only
// when it has sent the whole body, and takes a closed connection for a failure.
// Strangers get no such favour.
func (c *call) drain(timeout time.Duration) {
	if c.actor.Kind == fleet.Anonymous || c.r.ContentLength == 0 || c.r.Header.Get("Expect") != "" {
		return
	}
	c.readDeadline(timeout)
	_, _ = io.CopyN(io.Discard, c.r.Body, maxDrain)
}

// printable keeps control characters out of texts for people.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}
