package server

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/node"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/protocol/rbacapi"
	"github.com/tutti-project/tutti/internal/protocol/tls"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
)

type requestKey struct{}

// request is what the log says of a request besides its line.
type request struct {
	id       string
	remote   string      // address
	actor    fleet.Actor // who asks, by certificate or token
	recorded bool        // a handler keeps its entry in the audit log
	body     *body       // nil: it has none
}

// requestID is the reference that a request has in logs and error answers.
func requestID(ctx context.Context) string {
	if req, ok := ctx.Value(requestKey{}).(*request); ok {
		return req.id
	}
	return ""
}

// noteActor tells the log who turned out to ask.
func noteActor(ctx context.Context, actor fleet.Actor) {
	if req, ok := ctx.Value(requestKey{}).(*request); ok {
		req.actor = actor
	}
}

// front is what every request passes: it gets an id, is counted, logged, and
// kept from taking the process down.
type front struct {
	next    http.Handler
	log     *slog.Logger
	metrics *metrics
	access  *atomic.Bool // whether every request is logged
	// refused is told of a 401 or 403, before it is sent; may be nil.
	refused  func(ctx context.Context, req *request, route, path string)
	bodies   *budget
	bodyTime time.Duration        // see the setting body_timeout
	hsts     func() time.Duration // see the setting hsts_max_age
}

// front is what is before routes.
func (p *parts) front(routes http.Handler, access *atomic.Bool) front {
	return front{
		next:     routes,
		log:      p.log.Logger,
		metrics:  p.metrics,
		access:   access,
		refused:  refusals{p.audit}.record,
		bodies:   p.bodies,
		bodyTime: p.config.Load().BodyTimeout,
		hsts:     func() time.Duration { return p.config.Load().HSTSMaxAge },
	}
}

func (f front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	req := &request{id: newRequestID(), remote: hostOf(r.RemoteAddr), actor: fleet.ActorFrom(r.Context())}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
	f.boundBody(w, r, req)
	if req.body != nil {
		defer req.body.release()
	}
	f.forBrowsers(w.Header(), r.URL.Path)
	seen := &answer{
		ResponseWriter: w,
		r:              r,
		body:           req.body,
		id:             req.id,
		status:         http.StatusOK,
		comesBack:      puppet.ComesBack(r.Header.Get("X-Puppet-Version")),
	}
	if f.refused != nil {
		seen.refused = func() { f.refused(r.Context(), req, r.Method+" "+r.Pattern, r.URL.Path) } //nolint:contextcheck // the request carries its context
	}
	defer func() { //nolint:contextcheck // the request carries its context
		p := recover()
		if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http's own sentinel, compared as it does
			f.log.ErrorContext(r.Context(), "handler panicked", "panic", p, "request_id", req.id, "path", r.URL.Path, "stack", string(debug.Stack()))
			if !seen.begun {
				http.Error(seen, "Server Error: the server made a mistake; its log names the cause under request "+req.id, http.StatusInternalServerError)
				p = nil
			}
		}
		f.done(r, seen, req, time.Since(start))
		if p != nil {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
	}()
	f.next.ServeHTTP(seen, r)
}

// done counts and logs one request. The query is left out: it may hold facts.
func (f front) done(r *http.Request, seen *answer, req *request, took time.Duration) {
	f.metrics.request(r.Pattern, seen.status, took) // the pattern in routes.go that served it
	if !f.access.Load() {
		return
	}
	f.log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", seen.status), slog.Int64("bytes", seen.bytes), slog.Int64("ms", took.Milliseconds()),
		slog.String("actor", string(req.actor.Kind)+":"+req.actor.Name), slog.String("remote", r.RemoteAddr), slog.String("request_id", req.id))
}

// notForBrowsers is where only programs of nodes come.
var notForBrowsers = []string{"/puppet/", node.Prefix + "/", websocket.PathV1, websocket.PathV2}

// forBrowsers says to browsers what else they would guess: that nothing here is another type than it says, and
// that this host is spoken to by TLS only.
func (f front) forBrowsers(head http.Header, path string) {
	if slices.ContainsFunc(notForBrowsers, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
		return
	}
	head.Set("X-Content-Type-Options", "nosniff")
	if age := f.hsts(); age > 0 {
		head.Set("Strict-Transport-Security", "max-age="+strconv.FormatInt(int64(age/time.Second), 10))
	}
}

func newRequestID() string {
	var bits [8]byte
	_, _ = rand.Read(bits[:])
	var text [2 * len(bits)]byte
	hex.Encode(text[:], bits[:])
	return string(text[:])
}

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
	refused   func() // is told of a 401 or 403; may be nil
	id        string // of the request
	body      *body  // of the request; may be nil
	replaced  bool   // the answer is the body's refusal; what the handler writes is thrown away
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
	var shown any = told
	if service, is := enterpriseService(a.r.URL.Path); is {
		shown = (&pejson.Problem{Kind: service + "/" + told.Kind, Message: told.Message}).Object(service == rbacapi.Service)
	}
	text, _ := json.Marshal(shown) // words always encode
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
