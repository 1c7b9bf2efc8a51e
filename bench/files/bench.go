package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

var columns = []string{
	"requests", "files_per_s", "mb_per_s", "p50_ms", "p99_ms", "server_cpu_ms_per_file", "server_cpu_s_per_gb",
	"server_cores", "client_cores", "others_cores", "pss_peak_mb",
}

// makeFiles writes an environment with one module that holds all the files.
// Their bytes are random, so that nobody can win by compressing them.
func (s settings) makeFiles(environment string) error {
	files := filepath.Join(environment, "modules/blobs/files")
	for _, dir := range []string{filepath.Join(files, "small"), filepath.Join(environment, "manifests")} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // other users' processes read it
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(environment, "manifests/site.pp"), []byte("node default {}\n"), 0o644); err != nil { //nolint:gosec // as above
		return err
	}
	for i := -1; i < s.Files; i++ {
		path, content := filepath.Join(files, s.path(i)), s.content(i)
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// path is the name of small file i below the module's files; -1 is the large one.
func (s settings) path(i int) string {
	if i < 0 {
		return "big.bin"
	}
	return fmt.Sprintf("small/%05d", i)
}

// content is the same for the same seed and number, always.
func (s settings) content(i int) []byte {
	size := s.FileBytes
	if i < 0 {
		size = s.BigBytes
	}
	var seed [32]byte
	copy(seed[:], fmt.Sprintf("%d %d", s.RandomSeed, i))
	out := make([]byte, size)
	_, _ = rand.NewChaCha8(seed).Read(out) // never fails
	return out
}

// bench measures one server.
type bench struct {
	settings
	target rivals.Target
	cipher string
}

// small fetches the small files round and round.
func (b *bench) small(ctx context.Context, r route) (measure.Row, error) {
	warm := b.WarmSmall
	if b.target.Name() == "puppetserver" {
		warm = b.WarmPeer
	}
	ask := func(i int) (string, int64) { return r.before + b.path(i%b.Files) + r.after, b.FileBytes }
	return b.measure(ctx, "small"+r.suffix, ask, warm, b.verify(r, 0, 1, b.Files/2, b.Files-1))
}

// big fetches the large file again and again.
func (b *bench) big(ctx context.Context, r route) (measure.Row, error) {
	ask := func(int) (string, int64) { return r.before + b.path(-1) + r.after, b.BigBytes }
	return b.measure(ctx, "big"+r.suffix, ask, 1, b.verify(r, -1))
}

// verify fetches some files and compares every byte.
func (b *bench) verify(r route, files ...int) func(context.Context, *load.Conn) error {
	return func(ctx context.Context, conn *load.Conn) error {
		for _, i := range files {
			request := load.Request{Path: r.before + b.path(i) + r.after, Header: header()}
			response, err := conn.Fetch(ctx, request)
			if err := load.Expect(request, response, err, http.StatusOK); err != nil {
				return err
			}
			if sha256.Sum256(response.Body) != sha256.Sum256(b.content(i)) {
				return fmt.Errorf("%s served wrong bytes", request.Path)
			}
		}
		return nil
	}
}

func (b *bench) measure(
	ctx context.Context, name string, ask func(int) (string, int64), warm int, verify func(context.Context, *load.Conn) error,
) (measure.Row, error) {
	conns, err := b.connect(ctx)
	if err != nil {
		return measure.Row{}, err
	}
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	fetch := func(ctx context.Context, w, i int) error {
		path, size := ask(i)
		request := load.Request{Path: path, Header: header()}
		response, err := conns[w].Discard(ctx, request)
		if err := load.Expect(request, response, err, http.StatusOK); err != nil {
			return err
		}
		if response.BodyBytes != size {
			return fmt.Errorf("GET %s gave %d bytes, want %d", path, response.BodyBytes, size)
		}
		return nil
	}
	if err := verify(ctx, conns[0]); err != nil {
		return measure.Row{}, err
	}
	if _, err := load.Run(ctx, load.Plan{Workers: b.Clients, Total: warm}, fetch); err != nil {
		return measure.Row{}, fmt.Errorf("warm %s: %w", name, err)
	}
	b.cipher = tls.CipherSuiteName(conns[0].Cipher)
	_, size := ask(0)
	return b.timed(ctx, name, size, fetch)
}

func (b *bench) timed(ctx context.Context, name string, size int64, fetch func(context.Context, int, int) error) (measure.Row, error) {
	watch, err := measure.Start(ctx, b.target.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	result, err := load.Run(ctx, load.Plan{Workers: b.Clients, For: b.For}, fetch)
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, fmt.Errorf("measure %s: %w", name, err)
	}
	latency, wall := measure.Summarize(result.Latencies), result.Wall.Seconds()
	n, cpu := float64(latency.Count), span.Server.Seconds()
	bytes := n * float64(size)
	_, _ = fmt.Fprintf(os.Stderr, "%s: %s measured\n", b.target.Name(), name)
	return measure.Row{Server: b.target.Name(), Case: name, Figures: map[string]float64{
		"requests": n, "files_per_s": n / wall, "mb_per_s": bytes / 1e6 / wall,
		"p50_ms": ms(latency.P50), "p99_ms": ms(latency.P99),
		"server_cpu_ms_per_file": 1000 * cpu / n, "server_cpu_s_per_gb": cpu / (bytes / 1e9),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
		"pss_peak_mb": float64(span.PeakPSS) / 1e6,
	}}, nil
}

func (b *bench) connect(ctx context.Context) ([]*load.Conn, error) {
	conns := make([]*load.Conn, b.Clients)
	for w := range conns {
		config, err := b.target.Client(ctx, fmt.Sprintf("client-%d.example.org", w+1))
		if err != nil {
			return nil, err
		}
		if conns[w], err = load.NewConn(b.target.URL(), config); err != nil {
			return nil, err
		}
	}
	return conns, nil
}

func header() http.Header {
	return http.Header{"Accept": {"application/octet-stream"}, "X-Puppet-Version": {"7.23.0"}}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startTutti deploys the environment and finds the version it became: a
// catalog of any node names it as its code_id.
func startTutti(ctx context.Context, dir, environment string) (*rivals.Tutti, string, error) {
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	target, err := rivals.StartTutti(ctx, binary, dir)
	if err != nil {
		return nil, "", err
	}
	if err := target.Deploy(ctx, "production", environment, moduleDir); err != nil {
		return nil, "", errors.Join(err, target.Stop())
	}
	codeID, err := findCodeID(ctx, target)
	if err != nil {
		return nil, "", errors.Join(err, target.Stop())
	}
	return target, codeID, nil
}

func findCodeID(ctx context.Context, target *rivals.Tutti) (string, error) {
	const node = "client-1.example.org"
	config, err := target.Client(ctx, node)
	if err != nil {
		return "", err
	}
	conn, err := load.NewConn(target.URL(), config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	facts := fmt.Sprintf(`{"name":%q,"values":{"clientcert":%q},"timestamp":%q}`, node, node, time.Now().Format(time.RFC3339Nano))
	form := url.Values{
		"environment": {"production"}, "facts_format": {"application/json"}, "facts": {url.PathEscape(facts)},
		"static_catalog": {"true"}, "checksum_type": {"sha256"},
	}
	request := load.Request{
		Method: http.MethodPost, Path: "/puppet/v3/catalog/" + node + "?environment=production",
		Header: http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"}, "X-Puppet-Version": {"7.23.0"},
			"Accept": {"application/vnd.puppet.rich+json, application/json"},
		},
		Body: []byte(form.Encode()),
	}
	response, err := conn.Patient(ctx, request)
	if err := load.Expect(request, response, err, http.StatusOK); err != nil {
		return "", err
	}
	var catalog struct {
		CodeID string `json:"code_id"`
	}
	if err := json.Unmarshal(response.Body, &catalog); err != nil || catalog.CodeID == "" {
		return "", fmt.Errorf("the catalog names no code_id: %w", err)
	}
	return catalog.CodeID, nil
}
