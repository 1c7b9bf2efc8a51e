package server

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/front"
	"github.com/tutti-project/tutti/internal/server/settings"
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
	allowed := settings.Default().BodyTimeout + time.Duration(f.read/front.BytesASecond)*time.Second
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
	takes              front.Route
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
	for _, table := range []map[string]front.Route{agents, others} {
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
		cases = append(cases, bodyCase{op.Name, op.Method, api.Prefix + path, front.Route{Bytes: op.BodyLimit(), Streamed: op.Uploads()}})
	}
	return cases
}

// Every body ends: by its route's size, by what all bodies may have together, or by its time.
func TestEveryBodyIsBounded(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	const budgeted = 512 << 10
	p.bodies = front.NewBudget(budgeted)
	p.bodies.Patience = 0
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	handler := p.front(routes, new(atomic.Bool))
	actor := fleet.Actor{Kind: fleet.NodeActor, Name: "web-1", Grants: []fleet.Grant{{Permission: fleet.Everything}}}
	stopped := map[int]int{}
	for _, c := range bodyCases(t, p) {
		for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "application/octet-stream"} {
			f := &flood{ResponseRecorder: httptest.NewRecorder(), most: 4 * budgeted, start: time.Now()}
			r := httptest.NewRequestWithContext(fleet.WithActor(t.Context(), actor), c.method, c.path, f)
			r.Header.Set("Content-Type", kind)
			handler.ServeHTTP(f, r)
			switch {
			case f.wrong != nil:
				t.Errorf("%s as %s: %v", c.name, kind, f.wrong)
			case c.takes.Bytes == 0 && f.read > 0 && f.Code < http.StatusBadRequest:
				t.Errorf("%s as %s takes no body, and read %d bytes: %d", c.name, kind, f.read, f.Code)
			case !c.takes.Streamed && f.read > budgeted+64<<10:
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
	if used, theirs := p.bodies.Used(); used != 0 || theirs != 0 {
		t.Errorf("%d bytes are counted after all requests have ended, %d of strangers", used, theirs)
	}
}

// Logins that never end hold no more than what was sent of them, and none of them more than a login may have.
func TestHalfOpenLoginsHoldLittle(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	handler := p.front(routes, new(atomic.Bool))
	const logins, sent = 40, 4096
	var over sync.WaitGroup
	var senders []*io.PipeWriter
	for i := range logins {
		from, to := io.Pipe()
		senders = append(senders, to)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.Prefix+"/session", from)
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:4711", i)
		over.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), r) })
	}
	for _, to := range senders {
		for _, part := range []string{`{"name":"` + strings.Repeat("x", sent-9), "y"} { // who reads the second has counted the first
			if _, err := io.WriteString(to, part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if used, theirs := p.bodies.Used(); theirs != used || used < logins*sent || used > logins*(sent+1) {
		t.Errorf("%d half-open logins hold %d bytes, %d of strangers", logins, used, theirs)
	}
	for _, to := range senders {
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
	}
	over.Wait()
	if used, theirs := p.bodies.Used(); used != 0 || theirs != 0 {
		t.Errorf("%d bytes are counted after all logins have ended, %d of strangers", used, theirs)
	}
}

// A login's body has 8 KiB at most, and is not read at all when there were too many tries.
func TestALoginIsSmallAndCountedFirst(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	handler := p.front(routes, new(atomic.Bool))
	login := func() (f *flood) {
		f = &flood{ResponseRecorder: httptest.NewRecorder(), most: 1 << 20}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.Prefix+"/session", f)
		r.RemoteAddr = "192.0.2.9:4711"
		handler.ServeHTTP(f, r)
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
