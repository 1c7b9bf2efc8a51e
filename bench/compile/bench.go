package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// sizes are the roles of the environment; factor scales how many are measured.
var sizes = []struct {
	name   string
	factor float64
}{{"small", 2}, {"medium", 1}, {"large", 0.5}}

var columns = []string{
	"resources", "catalogs", "p50_ms", "p99_ms", "catalogs_per_s", "catalogs_per_cpu_s", "cpu_ms_per_catalog", "overhead_percent",
	"pss_peak_mb", "rss_peak_mb", "processes", "others_cores",
}

// bench measures one server.
type bench struct {
	target      rivals.Target
	facts       catalogrequest.Facts
	concurrency int
	sizes       string // those to measure, with commas

	mu        sync.Mutex
	uuids     map[string]bool // catalog_uuid seen, to prove that each was compiled
	resources int             // of the newest catalog counted
	serial    int             // over all requests to this server
}

func (b *bench) all(ctx context.Context, warm, catalogs int) ([]measure.Row, error) {
	b.uuids = map[string]bool{}
	begin := time.Now()
	for _, size := range sizes {
		if !named(b.sizes, size.name) {
			continue
		}
		if _, err := b.load(ctx, size.name, warm); err != nil {
			return nil, fmt.Errorf("warm %s: %w", size.name, err)
		}
		progress("%s: %d %s catalogs to warm up, %.0f s since start", b.target.Name(), warm, size.name, time.Since(begin).Seconds())
	}
	var rows []measure.Row
	for _, size := range sizes {
		if !named(b.sizes, size.name) {
			continue
		}
		row, err := b.measure(ctx, size.name, int(float64(catalogs)*size.factor))
		if err != nil {
			return rows, fmt.Errorf("measure %s: %w", size.name, err)
		}
		progress("%s: %s measured, %.0f s since start", b.target.Name(), size.name, time.Since(begin).Seconds())
		rows = append(rows, row)
	}
	return rows, nil
}

func named(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }

func (b *bench) measure(ctx context.Context, size string, catalogs int) (measure.Row, error) {
	watch, err := measure.Start(ctx, b.target.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	result, err := b.load(ctx, size, catalogs)
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	latency := measure.Summarize(result.Latencies)
	cpu, n := span.Server.Seconds(), float64(latency.Count)
	return measure.Row{Server: b.target.Name(), Case: size, Figures: map[string]float64{
		"resources": float64(b.resources), "catalogs": n,
		"p50_ms": ms(latency.P50), "p90_ms": ms(latency.P90), "p99_ms": ms(latency.P99), "mean_ms": ms(latency.Mean),
		"catalogs_per_s": n / result.Wall.Seconds(), "catalogs_per_cpu_s": n / cpu, "cpu_ms_per_catalog": 1000 * cpu / n,
		"server_cores": span.Cores(span.Server), "others_cores": span.Cores(span.Others),
		"pss_peak_mb": mb(span.PeakPSS), "rss_peak_mb": mb(span.PeakRSS), "pss_end_mb": mb(span.End.PSSBytes), "processes": float64(span.End.Processes),
	}}, nil
}

// load compiles n catalogs, each worker as a node of its own.
func (b *bench) load(ctx context.Context, size string, n int) (load.Result, error) {
	conns := make([]*load.Conn, b.concurrency)
	for w := range conns {
		config, err := b.target.Client(ctx, certname(size, w))
		if err != nil {
			return load.Result{}, err
		}
		if conns[w], err = load.NewConn(b.target.URL(), config); err != nil {
			return load.Result{}, err
		}
		defer conns[w].Close()
	}
	return load.Run(ctx, load.Plan{Workers: b.concurrency, Total: n}, func(ctx context.Context, w, _ int) error {
		return b.compile(ctx, conns[w], certname(size, w))
	})
}

func certname(size string, worker int) string {
	return fmt.Sprintf("%s-%d.example.org", size, worker+1)
}

// compile asks for one catalog with facts that no request had before, and
// looks whether the answer was made from them.
func (b *bench) compile(ctx context.Context, conn *load.Conn, node string) error {
	b.mu.Lock()
	b.serial++
	release := fmt.Sprintf("12.%d", 1000+b.serial)
	b.mu.Unlock()
	request, err := catalogrequest.New(node, b.facts.Of(node, release))
	if err != nil {
		return err
	}
	response, err := conn.Patient(ctx, request)
	if err := load.Expect(request, response, err, http.StatusOK); err != nil {
		return err
	}
	return b.check(response.Body, node, release)
}

// check proves that this is a catalog of this node compiled for this request:
// the template of /etc/motd prints the release we made up.
func (b *bench) check(body []byte, node, release string) error {
	if !bytes.Contains(body, []byte("Debian "+release)) {
		return fmt.Errorf("the catalog of %s was not compiled with the facts of the request: no %q in %d bytes", node, release, len(body))
	}
	uuid := between(body, `"catalog_uuid":"`, `"`)
	b.mu.Lock()
	defer b.mu.Unlock()
	if uuid == "" || b.uuids[uuid] {
		return fmt.Errorf("the catalog of %s has no catalog_uuid of its own: %q", node, uuid)
	}
	b.uuids[uuid] = true
	b.resources = bytes.Count(body, []byte(`"exported":`))
	return nil
}

// between finds what stands between two strings, white space after colons
// ignored by trying both spellings of compact JSON.
func between(text []byte, before, after string) string {
	_, rest, found := bytes.Cut(text, []byte(before))
	if !found {
		if _, rest, found = bytes.Cut(text, []byte(strings.Replace(before, ":", ": ", 1))); !found {
			return ""
		}
	}
	value, _, _ := bytes.Cut(rest, []byte(after))
	return string(value)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
func mb(n int64) float64         { return float64(n) / 1e6 }

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
