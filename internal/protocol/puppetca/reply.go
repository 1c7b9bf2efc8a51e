package puppetca

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// handler answers a request or returns why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// withStatus is an error that this API answers with a code of its own.
type withStatus struct {
	error
	status int
}

func (e withStatus) Unwrap() error { return e.error }

// as answers err with status if its kind is one of kinds: where the API's
// clients expect another code than the table's.
func as(status int, err error, kinds ...fault.Kind) error {
	for _, kind := range kinds {
		if fault.Is(err, kind) {
			return withStatus{err, status}
		}
	}
	return err
}

// late keeps an answer back until the act is recorded. Answers are small here.
type late struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (l *late) WriteHeader(status int) { l.status = status }

func (l *late) Write(p []byte) (int, error) {
	l.body = append(l.body, p...)
	return len(p), nil
}

// release sends what was written; nothing, if there was an error to be told.
func (l *late) release() {
	if l.status == 0 && l.body == nil {
		return
	}
	if l.status != 0 {
		l.ResponseWriter.WriteHeader(l.status)
	}
	_, _ = l.ResponseWriter.Write(l.body) // nobody is left to tell if this fails
}

// Unwrap lets http.MaxBytesReader and http.ResponseController reach the real writer.
func (l *late) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func forbidden(r *http.Request) error {
	return fault.New(fault.Denied, "Forbidden request: %s (method :%s). Please see the server logs for details.",
		r.URL.Path, strings.ToLower(r.Method))
}

func (a *server) reply(next handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := next(w, r)
		if err == nil {
			return
		}
		status, text := api.StatusOf(err), fault.Detail(err)
		if own, ok := errors.AsType[withStatus](err); ok {
			status = own.status
		}
		if text == "" {
			text = "Internal Server Error: the server's log says more."
		}
		a.note(r, status, err)
		if wait := retrySeconds(status, err); wait > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(wait, 10))
		}
		sendText(w, status, text)
	})
}

// retrySeconds is when to come back. Who gets a 503 and is not told when is told
// some time in half a minute, so that not all come back together.
func retrySeconds(status int, err error) int64 {
	wait := api.RetrySeconds(err)
	if wait == 0 && status == http.StatusServiceUnavailable {
		return 5 + rand.Int64N(26) //nolint:gosec // spreads load, guards nothing
	}
	return wait
}

func (a *server) note(r *http.Request, status int, err error) {
	if status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) { // who left is no failure
		a.log.ErrorContext(r.Context(), "CA request failed", "method", r.Method, "path", r.URL.Path, "err", err)
		return
	}
	a.log.DebugContext(r.Context(), "CA request refused", "method", r.Method, "path", r.URL.Path, "status", status, "err", err)
}

func sendText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) //nolint:gosec // plain text, nosniff; an error means that nobody is left to tell
}

func sendJSON(w http.ResponseWriter, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // as above
	return nil
}

// sendPEM answers 304 to a client whose copy is not older. Times on the wire
// have whole seconds, so a change counts from the next one.
func sendPEM(w http.ResponseWriter, r *http.Request, pem []byte, changed time.Time) error {
	changed = changed.Add(time.Second - 1).Truncate(time.Second)
	w.Header().Set("Last-Modified", changed.UTC().Format(http.TimeFormat))
	if since, err := http.ParseTime(r.Header.Get("If-Modified-Since")); err == nil && !changed.After(since) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	sendText(w, http.StatusOK, string(pem))
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, withStatus{fault.New(fault.Invalid, "the body has more than %d bytes", limit), http.StatusRequestEntityTooLarge}
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the body was cut off")
	}
	return body, nil
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := readBody(w, r, maxJSONBytes)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fault.Wrap(fault.Invalid, err, "the body is not the JSON object that is expected here: %s", jsonProblem(err))
	}
	return nil
}

func jsonProblem(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%q is a %s", wrong.Field, wrong.Value)
	}
	if _, broken := errors.AsType[*json.SyntaxError](err); broken {
		return "it is not valid JSON"
	}
	return err.Error() // our own words
}
