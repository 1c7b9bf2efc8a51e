package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// flood is a body without an end, and the answer to it. Whoever reads it must have said until when.
type flood struct {
	*httptest.ResponseRecorder
	most  int64 // then it stalls until its deadline
	start time.Time
	due   time.Time
	read  int64
	wrong error
}

func (f *flood) SetReadDeadline(at time.Time) error {
	f.due = at
	return nil
}

func (f *flood) Read(p []byte) (int, error) {
	allowed := Default().BodyTimeout + time.Duration(f.read/bytesASecond)*time.Second
	if f.due.IsZero() || f.due.After(time.Now().Add(allowed)) {
		f.wrong = fmt.Errorf("after %d bytes its body is due %s after its beginning", f.read, f.due.Sub(f.start))
	}
	if f.read >= f.most {
		return 0, os.ErrDeadlineExceeded
	}
	for i := range p {
		p[i] = ' '
	}
	f.read += int64(len(p))
	return len(p), nil
}

func (*flood) Close() error { return nil }

// bodyCase is a request that may have a body.
type bodyCase struct {
	name, method, path string
	takes              route
}

// below is what is asked for below a route.
var below = []string{
	"", "web-1", "md5/9d5ed678fe57bcca610140957afab571/etc/motd", "certificate_request/web-1", "certificate_status/web-1", "groups", "cmd",
}

// bodyCases is every route of the table and every operation of the API: what is added to them is tried here, too.
func bodyCases(t *testing.T, p *parts) (cases []bodyCase) {
	t.Helper()
	agents, others, err := p.table(p.health())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []map[string]route{agents, others} {
		for _, pattern := range slices.Sorted(maps.Keys(table)) {
			if strings.HasPrefix(pattern, "/pcp") || pattern == api.Prefix+"/" || strings.HasPrefix(pattern, http.MethodGet+" ") {
				continue // the first become websockets; the second are below; the last have no body
			}
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
				for _, more := range below {
					cases = append(cases, bodyCase{method + " " + pattern + more, method, pattern + more + "?environment=production", table[pattern]})
				}
			}
		}
	}
	for _, op := range api.Operations() {
		if op.Method == http.MethodGet { // some are streams
			if op.BodyLimit() > 0 {
				t.Errorf("%s is a question with a body", op.Name)
			}
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(op.Path)
		cases = append(cases, bodyCase{op.Name, op.Method, api.Prefix + path, route{bytes: op.BodyLimit(), streamed: op.Uploads()}})
	}
	return cases
}

// Every body ends: by its route's size, by what all bodies may have together, or by its time.
func TestEveryBodyIsBounded(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*Config) {})
	const budgeted = 512 << 10
	p.bodies = newBudget(budgeted)
	p.bodies.patience = 0
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	front := p.front(routes, new(atomic.Bool))
	actor := fleet.Actor{Kind: fleet.NodeActor, Name: "web-1", Grants: []fleet.Grant{{Permission: fleet.Everything}}}
	stopped := map[int]int{}
	for _, c := range bodyCases(t, p) {
		for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "application/octet-stream"} {
			f := &flood{ResponseRecorder: httptest.NewRecorder(), most: 4 * budgeted, start: time.Now()}
			r := httptest.NewRequestWithContext(fleet.WithActor(t.Context(), actor), c.method, c.path, f)
			r.Header.Set("Content-Type", kind)
			front.ServeHTTP(f, r)
			switch {
			case f.wrong != nil:
				t.Errorf("%s as %s: %v", c.name, kind, f.wrong)
			case c.takes.bytes == 0 && f.read > 0 && f.Code < http.StatusBadRequest:
				t.Errorf("%s as %s takes no body, and read %d bytes: %d", c.name, kind, f.read, f.Code)
			case !c.takes.streamed && f.read > budgeted+64<<10:
				t.Errorf("%s as %s read %d bytes, although all bodies together may have %d", c.name, kind, f.read, budgeted)
			case f.read > 0 && f.Code < http.StatusBadRequest:
				t.Errorf("%s as %s: %d although its body never ended", c.name, kind, f.Code)
			}
			stopped[f.Code]++
		}
	}
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusRequestTimeout} {
		if stopped[status] == 0 {
			t.Errorf("no body was stopped with %d: %v", status, stopped)
		}
	}
	if used, theirs := p.bodies.now(); used != 0 || theirs != 0 {
		t.Errorf("%d bytes are counted after all requests have ended, %d of strangers", used, theirs)
	}
}

// Logins that never end hold no more than what was sent of them, and none of them more than a login may have.
func TestHalfOpenLoginsHoldLittle(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*Config) {})
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	front := p.front(routes, new(atomic.Bool))
	const logins, sent = 40, 4096
	var over sync.WaitGroup
	var senders []*io.PipeWriter
	for i := range logins {
		from, to := io.Pipe()
		senders = append(senders, to)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.Prefix+"/session", from)
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:4711", i)
		over.Go(func() { front.ServeHTTP(httptest.NewRecorder(), r) })
	}
	for _, to := range senders {
		for _, part := range []string{`{"name":"` + strings.Repeat("x", sent-9), "y"} { // who reads the second has counted the first
			if _, err := io.WriteString(to, part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if used, theirs := p.bodies.now(); theirs != used || used < logins*sent || used > logins*(sent+1) {
		t.Errorf("%d half-open logins hold %d bytes, %d of strangers", logins, used, theirs)
	}
	if most := 1000 * int64(api.MaxLogin+1); p.bodies.strangers > 64<<20 || most > 64<<20 {
		t.Errorf("strangers may hold %d bytes, a thousand logins %d", p.bodies.strangers, most)
	}
	for _, to := range senders {
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
	}
	over.Wait()
	if used, theirs := p.bodies.now(); used != 0 || theirs != 0 {
		t.Errorf("%d bytes are counted after all logins have ended, %d of strangers", used, theirs)
	}
}

// A login's body has 8 KiB at most, and is not read at all when there were too many tries.
func TestALoginIsSmallAndCountedFirst(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*Config) {})
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	front := p.front(routes, new(atomic.Bool))
	login := func() (f *flood) {
		f = &flood{ResponseRecorder: httptest.NewRecorder(), most: 1 << 20}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.Prefix+"/session", f)
		r.RemoteAddr = "192.0.2.9:4711"
		front.ServeHTTP(f, r)
		return f
	}
	if f := login(); f.Code != http.StatusBadRequest || f.read > api.MaxLogin+1 || !strings.Contains(f.Body.String(), "larger than 8192 bytes") {
		t.Errorf("%d after %d bytes: %s", f.Code, f.read, f.Body)
	}
	var last *flood
	for range 100 {
		if last = login(); last.Code == http.StatusTooManyRequests {
			break
		}
	}
	if last.Code != http.StatusTooManyRequests || last.read != 0 {
		t.Errorf("one try too many: %d after %d bytes", last.Code, last.read)
	}
}

// A node that sends its report a byte at a time is given up, however long it goes on.
func TestATrickledReportIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		conn := dial(t, func(w http.ResponseWriter, r *http.Request) {
			noteActor(r.Context(), fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"})
			_, err := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusBadRequest)
			ended <- err
		}, slog.New(slog.DiscardHandler))
		_, _ = io.WriteString(conn, "PUT /puppet/v3/report/web-1 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
		start := time.Now()
		var trickle sync.WaitGroup
		trickle.Go(func() {
			tick := time.NewTicker(time.Second) // long before the next piece is due
			defer tick.Stop()
			for range tick.C {
				if _, err := io.WriteString(conn, "x"); err != nil {
					return
				}
			}
		})
		defer trickle.Wait()
		defer func() { _ = conn.Close() }()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || answer.StatusCode != http.StatusRequestTimeout {
			t.Errorf("got %v and %s", err, answer.Status)
		}
		if took := time.Since(start); took < Default().BodyTimeout || took > Default().BodyTimeout+2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAFullBudgetSaysSo(t *testing.T) {
	t.Parallel()
	front := testFront(route{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteActor(r.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "ann"})
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
		}
	}), bytes: 1 << 20}, slog.New(slog.DiscardHandler), new(atomic.Bool))
	front.bodies = newBudget(100)
	front.bodies.patience = 0
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/nodes", strings.NewReader(strings.Repeat("x", 101)))
	r.Header.Set("X-Puppet-Version", "99.0.0") // one that comes back
	w := httptest.NewRecorder()
	front.ServeHTTP(w, r)
	var told api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusServiceUnavailable || told.Kind != "unavailable" || !strings.Contains(told.Message, "body_budget_bytes") ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestBrowsersAreToldWhatTheyMayNotGuess(t *testing.T) {
	t.Parallel()
	front := testFront(bodiless(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), slog.New(slog.DiscardHandler), new(atomic.Bool))
	for path, want := range map[string][2]string{
		"/api/v1/nodes": {"nosniff", "max-age=31536000"}, "/status/v1/simple": {"nosniff", "max-age=31536000"}, "/pdb/query/v4": {"nosniff", "max-age=31536000"},
		"/puppet/v3/catalog/web-1": {}, "/node/v1/catalog": {},
	} {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
		if got := [2]string{w.Header().Get("X-Content-Type-Options"), w.Header().Get("Strict-Transport-Security")}; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
