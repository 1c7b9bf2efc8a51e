package puppetapi_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
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
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/puppetapi"
)

// overTLS serves h on loopback. Who asks is what the client says in a header:
// checking certificates is not this package's work.
func overTLS(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := fleet.Actor{Kind: fleet.Anonymous}
		if name := r.Header.Get("Node"); name != "" {
			actor = asNode(name)
		}
		h.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), actor)))
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func request(t testing.TB, server *httptest.Server, node, method, path string, body io.Reader, contentType string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "*/*")
	r.Header.Set("Node", node)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func textOf(t testing.TB, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestManyCatalogsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppetapi.Config) { c.Limits.Catalogs = puppetapi.Limit{Active: 16, Waiting: 300} })
	server := overTLS(t, b)
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			node := fmt.Sprintf("node-%d.example.org", i)
			response := request(t, server, node, "POST", "/puppet/v3/catalog/"+node+inEnv,
				strings.NewReader(formOf(factsOf(node))), "application/x-www-form-urlencoded")
			if text := textOf(t, response); response.StatusCode != http.StatusOK || text != `{"name":"`+node+`"}` {
				t.Errorf("%s: status %d, %.200s", node, response.StatusCode, text)
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
	b := newBench(t, func(c *puppetapi.Config) {
		c.Limits = puppetapi.Limits{
			Catalogs: puppetapi.Limit{Active: 2}, Files: puppetapi.Limit{Active: 1}, Reports: puppetapi.Limit{Active: 1},
			RetryMin: 7 * time.Second, RetryMax: 9 * time.Second,
		}
	})
	b.catalogs.answer = func(puppetapi.Ask) (puppetapi.Answer, error) {
		started <- struct{}{}
		<-end
		return puppetapi.Answer{Document: []byte("{}")}, nil
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
			b := newBench(t, func(c *puppetapi.Config) {
				c.Limits = puppetapi.Limits{Catalogs: puppetapi.Limit{Active: 1, Waiting: 1}, Wait: wait}
			})
			b.catalogs.answer = func(puppetapi.Ask) (puppetapi.Answer, error) {
				<-time.After(work)
				return puppetapi.Answer{Document: []byte("{}")}, nil
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
	b := newBench(t, func(c *puppetapi.Config) { c.Limits.Catalogs = puppetapi.Limit{Active: 1, Waiting: 1} })
	b.catalogs.answer = func(puppetapi.Ask) (puppetapi.Answer, error) {
		close(started)
		<-end
		return puppetapi.Answer{Document: []byte("{}")}, nil
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
	if text := textOf(t, response); response.StatusCode != 413 || !strings.Contains(text, "the facts are larger than") {
		t.Errorf("status %d, %s", response.StatusCode, text)
	}
}

func TestSlowBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppetapi.Config) { c.BodyTimeout = 50 * time.Millisecond })
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
	if text := textOf(t, response); response.StatusCode != 408 || !strings.Contains(text, "the report is too slow in coming") {
		t.Errorf("status %d, %s", response.StatusCode, text)
	}
}

// Agents name a backup's path with two slashes; the handler must see them.
func TestBackupPathOverTheWire(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := overTLS(t, b)
	response := request(t, server, web, "PUT", bucketURL+"sha256/"+digestOf("x")+"//etc/motd"+inEnv, strings.NewReader("x"), "application/octet-stream")
	if response.StatusCode != 200 {
		t.Fatalf("status %d: %s", response.StatusCode, textOf(t, response))
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
	if err == io.EOF {
		err = cas.ErrCorrupt
	}
	return n, err
}

func TestCorruptContentNeverArrivesWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppetapi.Config) { c.Blobs = corrupting{c.Blobs.(*castest.Store)} })
	server := overTLS(t, b)
	small := request(t, server, web, "GET", "/puppet/v3/file_content/modules/ntp/ntp.conf"+inEnv, nil, "")
	if text := textOf(t, small); small.StatusCode != 500 || !strings.Contains(text, "internal error") {
		t.Errorf("status %d, %s", small.StatusCode, text)
	}
	large := request(t, server, web, "GET", "/puppet/v3/file_content/modules/ntp/big"+inEnv, nil, "")
	if content, err := io.ReadAll(large.Body); err == nil {
		t.Errorf("%d corrupt bytes arrived as if they were whole", len(content))
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
			bench := newBench(b, func(c *puppetapi.Config) { lib = c.Trees.(library) })
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
