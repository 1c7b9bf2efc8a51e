package front

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Config is what a Handler works with.
type Config struct {
	Log      *slog.Logger
	Access   *atomic.Bool // whether every request is logged
	Bodies   *Budget
	BodyTime time.Duration        // how long a body may take as a whole, apart from its size
	HSTS     func() time.Duration // how long browsers speak TLS only to this host; 0: it is not said
	Programs []string             // the prefixes of paths that no browser asks for

	// Count is told of each request, and which pattern served it.
	Count func(pattern string, status int, took time.Duration)
	// Refused is told of a 401 or 403 that no handler recorded, before it is sent; may be nil.
	Refused func(ctx context.Context, actor fleet.Actor, operation, object string)
	// ComesBack tells whether a client can follow a Retry-After. Agents that cannot end their run over it with
	// an error of their own; without it they show the server's.
	ComesBack func(r *http.Request) bool
	// Problem is the JSON of an error in the form that the clients of a path read.
	Problem func(path string, p api.Problem) any
}

// Handler is what every request passes: it gets an id, is counted, logged, and
// kept from taking the process down.
type Handler struct {
	Config
	next http.Handler
}

// New puts a handler before next.
func New(c Config, next http.Handler) *Handler { return &Handler{c, next} }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	req := &request{id: newRequestID(), remote: hostOf(r.RemoteAddr), actor: fleet.ActorFrom(r.Context())}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
	h.boundBody(w, r, req)
	if req.body != nil {
		defer req.body.release()
	}
	h.forBrowsers(w.Header(), r.URL.Path)
	seen := &answer{
		ResponseWriter: w,
		r:              r,
		body:           req.body,
		id:             req.id,
		status:         http.StatusOK,
		comesBack:      h.ComesBack(r),
		problem:        h.Problem,
	}
	if h.Refused != nil {
		seen.refused = func() { //nolint:contextcheck // the request carries its context
			if !req.recorded {
				h.Refused(r.Context(), req.actor, r.Method+" "+r.Pattern, r.URL.Path)
			}
		}
	}
	defer func() { //nolint:contextcheck // the request carries its context
		p := recover()
		if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http's own sentinel, compared as it does
			h.Log.ErrorContext(r.Context(), "handler panicked", "panic", p, "request_id", req.id, "path", r.URL.Path, "stack", string(debug.Stack()))
			if !seen.begun {
				http.Error(seen, "Server Error: the server made a mistake; its log names the cause under request "+req.id, http.StatusInternalServerError)
				p = nil
			}
		}
		h.done(r, seen, req, time.Since(start))
		if p != nil {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
	}()
	h.next.ServeHTTP(seen, r)
}

// done counts and logs one request. The query is left out: it may hold facts.
func (h *Handler) done(r *http.Request, seen *answer, req *request, took time.Duration) {
	h.Count(r.Pattern, seen.status, took)
	if !h.Access.Load() {
		return
	}
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", seen.status), slog.Int64("bytes", seen.bytes), slog.Int64("ms", took.Milliseconds()),
		slog.String("actor", string(req.actor.Kind)+":"+req.actor.Name), slog.String("remote", r.RemoteAddr), slog.String("request_id", req.id))
}

// forBrowsers says to browsers what else they would guess: that nothing here is another type than it says, and
// that this host is spoken to by TLS only.
func (h *Handler) forBrowsers(head http.Header, path string) {
	if slices.ContainsFunc(h.Programs, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
		return
	}
	head.Set("X-Content-Type-Options", "nosniff")
	if age := h.HSTS(); age > 0 {
		head.Set("Strict-Transport-Security", "max-age="+strconv.FormatInt(int64(age/time.Second), 10))
	}
}
