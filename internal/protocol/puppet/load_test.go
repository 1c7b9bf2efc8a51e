package puppet_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

// overTLS serves h on loopback. Who asks is what the client says in a header:
// checking certificates is not this package's work.
func overTLS(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := fleet.Actor{Kind: fleet.Anonymous}
		if name := r.Header.Get("Node"); name != "" {
			actor = asNode(name)
		}
		h.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), actor)))
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
	server.StartTLS()
	tb.Cleanup(server.Close)
	return server
}

// request makes a request of a node and reads the answer to its end.
func request(tb testing.TB, server *httptest.Server, node, method, path, body, contentType string) (status int, text string, err error) {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Accept", "*/*")
	r.Header.Set("Node", node)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

func TestManyCatalogsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppet.Config) { c.Limits.Catalogs = puppet.Limit{Active: 16, Waiting: 300} })
	server := overTLS(t, b)
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			node := fmt.Sprintf("node-%d.example.org", i)
			status, text, err := request(t, server, node, "POST", "/puppet/v3/catalog/"+node+inEnv,
				formOf(factsOf(node)), "application/x-www-form-urlencoded")
			if err != nil || status != http.StatusOK || text != `{"name":"`+node+`"}` {
				t.Errorf("%s: status %d, %.200s, %v", node, status, text, err)
			}
		})
	}
	wg.Wait()
	nodes, err := b.inventory.Nodes(t.Context(), inventory.Page{Limit: 1000})
	if err != nil || len(nodes) != 300 {
		t.Errorf("facts of %d nodes are stored, want 300; %v", len(nodes), err)
	}
}

// Catalogs that do not end keep neither files nor reports from being served.
func TestClassesDoNotStarveEachOther(t *testing.T) {
	t.Parallel()
	started, end := make(chan struct{}, 8), make(chan struct{})
	b := newBench(t, func(c *puppet.Config) {
		c.Limits = puppet.Limits{
			Catalogs: puppet.Limit{Active: 2}, Files: puppet.Limit{Active: 1}, Reports: puppet.Limit{Active: 1},
			RetryMin: 7 * time.Second, RetryMax: 9 * time.Second,
		}
	})
	b.catalogs.answer = func(checkin.Visit) (checkin.Answer, error) {
		started <- struct{}{}
		<-end
		return checkin.Answer{Document: []byte("{}")}, nil
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { check(t, b.send("GET", catalogURL, ""), want{status: 200}) })
		<-started
	}
	w := b.send("GET", catalogURL, "")
	check(t, w, want{status: 503, body: `{"message":"Service Unavailable: all 2 places for catalogs are taken","issue_kind":"RUNTIME_ERROR"}`})
	if after, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || after < 7 || after > 9 {
		t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
	}
	check(t, b.send("GET", "/puppet/v3/file_content/modules/ntp/ntp.conf"+inEnv, ""), want{status: 200})
	check(t, b.send("PUT", "/puppet/v3/report/"+web+inEnv, reportOf(web), jsonType), want{status: 200})
	close(end)
	wg.Wait()
	check(t, b.send("GET", catalogURL, ""), want{status: 200})
}

// Who waits for a place gets it when one is free, and hears of it when none is.
func TestWaitingForAPlace(t *testing.T) {
	t.Parallel()
	type ending struct {
		status int
		after  time.Duration
	}
	const work = 8 * time.Second
	for wait, endings := range map[time.Duration][]ending{
		10 * time.Second: {{200, work}, {200, 2 * work}, {503, 0}}, // the third finds the queue full
		5 * time.Second:  {{200, work}, {503, 5 * time.Second}, {503, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(c *puppet.Config) {
				c.Limits = puppet.Limits{Catalogs: puppet.Limit{Active: 1, Waiting: 1}, Wait: wait}
			})
			b.catalogs.answer = func(checkin.Visit) (checkin.Answer, error) {
				<-time.After(work)
				return checkin.Answer{Document: []byte("{}")}, nil
			}
			begin := time.Now()
			var wg sync.WaitGroup
			for _, wanted := range endings {
				wg.Go(func() {
					w := b.send("GET", catalogURL, "")
					if got := (ending{w.Code, time.Since(begin)}); got != wanted {
						t.Errorf("with at most %s of waiting: %v, want %v", wait, got, wanted)
					}
				})
				synctest.Wait()
			}
			wg.Wait()
		})
	}
}

func TestGivingUpWhileWaiting(t *testing.T) {
	t.Parallel()
	started, end := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(c *puppet.Config) { c.Limits.Catalogs = puppet.Limit{Active: 1, Waiting: 1} })
	b.catalogs.answer = func(checkin.Visit) (checkin.Answer, error) {
		close(started)
		<-end
		return checkin.Answer{Document: []byte("{}")}, nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { b.send("GET", catalogURL, "") })
	<-started
	ctx, cancel := context.WithCancel(fleet.WithActor(t.Context(), asNode(web)))
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, catalogURL, nil)
	r.Header.Set("Accept", "*/*")
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	check(t, w, want{status: 503})
	if strings.Contains(b.logs.String(), "level=ERROR") {
		t.Errorf("giving up was logged as a failure: %s", b.logs)
	}
	close(end)
	wg.Wait()
}

// An upload that trickles in holds no place that metadata and content need.
func TestSlowUploadsDoNotHoldUpFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppet.Config) {
		c.Limits.Files, c.Limits.Uploads, c.Limits.Wait = puppet.Limit{Active: 1}, puppet.Limit{Active: 1}, time.Millisecond
	})
	put := func(body io.Reader) *httptest.ResponseRecorder {
		return b.sendAs(asNode(web), "PUT", bucketURL+"sha256/"+digestOf("slow")+inEnv, body, "Content-Type: application/octet-stream")
	}
	slow, agent := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { check(t, put(slow), want{status: 200}) })
	if _, err := io.WriteString(agent, "sl"); err != nil { // returns when it was read
		t.Fatal(err)
	}
	check(t, b.send("GET", "/puppet/v3/file_content/modules/ntp/ntp.conf"+inEnv, ""), want{status: 200})
	check(t, b.send("GET", "/puppet/v3/file_metadata/modules/ntp/ntp.conf"+inEnv, ""), want{status: 200})
	check(t, put(strings.NewReader("slow")), want{status: 503, holds: "all 1 places for uploads are taken"})
	if _, err := io.WriteString(agent, "ow"); err != nil {
		t.Fatal(err)
	}
	_ = agent.Close()
	wg.Wait()
	check(t, put(strings.NewReader("slow")), want{status: 200})
}

func textOf(tb testing.TB, body io.Reader) string {
	tb.Helper()
	text, err := io.ReadAll(body)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// An agent reads the answer only after it has sent its whole body. A large body
// that is refused must be taken, or the agent never sees why.
func TestRefusedBodiesAreTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := overTLS(t, b)
	facts := `{"name":"` + web + `","values":{"big":"` + strings.Repeat("x", 50<<20) + `"}}`
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "PUT /puppet/v3/facts/%s%s HTTP/1.1\r\nHost: x\r\nNode: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		web, inEnv, web, len(facts), facts)
	if err != nil {
		t.Fatalf("the connection was closed under the body: %v", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text := textOf(t, response.Body); response.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, "the facts are larger than") {
		t.Errorf("status %d, %s", response.StatusCode, text)
	}
}

func TestSlowBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppet.Config) { c.BodyTimeout = 50 * time.Millisecond })
	server := overTLS(t, b)
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "PUT /puppet/v3/report/%s%s HTTP/1.1\r\nHost: x\r\nNode: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		web, inEnv, web)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text := textOf(t, response.Body); response.StatusCode != http.StatusRequestTimeout || !strings.Contains(text, "the report is too slow in coming") {
		t.Errorf("status %d, %s", response.StatusCode, text)
	}
}

// Agents name a backup's path with two slashes; the handler must see them.
func TestBackupPathOverTheWire(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := overTLS(t, b)
	status, text, err := request(t, server, web, "PUT", bucketURL+"sha256/"+digestOf("x")+"//etc/motd"+inEnv, "x", "application/octet-stream")
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d: %s, %v", status, text, err)
	}
	all, err := b.bucket.Backups(t.Context(), web, time.Time{}, time.Time{}, 10)
	if err != nil || len(all) != 1 || all[0].Path != "/etc/motd" {
		t.Errorf("backups %+v, %v", all, err)
	}
}

// corrupting is a blob store whose contents went bad.
type corrupting struct{ *castest.Store }

func (c corrupting) Open(ctx context.Context, d fleet.Digest) (cas.Blob, error) {
	blob, err := c.Store.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	return badBlob{blob}, nil
}

type badBlob struct{ cas.Blob }

func (b badBlob) Read(p []byte) (int, error) {
	n, err := b.Blob.Read(p)
	if errors.Is(err, io.EOF) {
		err = cas.ErrCorrupt
	}
	return n, err
}

func TestCorruptContentNeverArrivesWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppet.Config) { c.Blobs = corrupting{c.Blobs.(*castest.Store)} })
	server := overTLS(t, b)
	const base = "/puppet/v3/file_content/modules/ntp/"
	status, text, err := request(t, server, web, "GET", base+"ntp.conf"+inEnv, "", "")
	if err != nil || status != http.StatusInternalServerError || !strings.Contains(text, "internal error") {
		t.Errorf("status %d, %s, %v", status, text, err)
	}
	if _, text, err := request(t, server, web, "GET", base+"big"+inEnv, "", ""); err == nil {
		t.Errorf("%d corrupt bytes arrived as if they were whole", len(text))
	}
	if !strings.Contains(b.logs.String(), cas.ErrCorrupt.Error()) {
		t.Errorf("the log does not say it: %s", b.logs)
	}
}

func BenchmarkFileContent(b *testing.B) {
	sizes := map[string]int{"10KB": 10 << 10, "100MB": 100 << 20}
	for name, size := range sizes {
		b.Run(name, func(b *testing.B) {
			var lib library
			bench := newBench(b, func(c *puppet.Config) { lib = c.Trees.(library) })
			lib.deploy(b, bench.blobs, "production", map[string]string{"modules/m/files/f": string(bytes.Repeat([]byte{'x'}, size))})
			server := overTLS(b, bench)
			server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 16
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					fetch(b, server)
				}
			})
		})
	}
}

func fetch(b *testing.B, server *httptest.Server) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/puppet/v3/file_content/modules/m/f"+inEnv, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", "application/octet-stream")
	r.Header.Set("Node", web)
	response, err := server.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n != response.ContentLength {
		b.Fatal(n, err)
	}
}
