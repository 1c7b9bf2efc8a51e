// Verify measures what it does to a node that waits for its catalog that others are compared with plain Puppet's in the background:
// the time of compiles without, with the share that servers have, and with all of them verified. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/verify [-compiles 300] [-shares off,1%,100%]
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const moduleDir = "/usr/share/puppet/modules"

var columns = []string{"requests", "p50_ms", "p99_ms", "per_s", "server_cores", "client_cores", "others_cores"}

// settings are the knobs; they go into the report as they were.
type settings struct {
	Environment string `json:"environment"`
	Facts       string `json:"facts"`
	Node        string `json:"node"`
	Shares      string `json:"shares"`
	Warm        int    `json:"warm"`
	Compiles    int    `json:"compiles"` // with each share
	Waiting     int    `json:"waiting"`  // nodes that wait at the same time

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.StringVar(&s.Environment, "environment", "internal/compiler/ruby/testdata/bench", "environment directory to compile")
	flag.StringVar(&s.Facts, "facts", "internal/compiler/ruby/testdata/facts/debian12.json", "facts of a node")
	flag.StringVar(&s.Node, "node", "medium", "which catalog: small, medium or large")
	flag.StringVar(&s.Shares, "shares", "off,1%,100%", "values of verify_share, the one to compare with first")
	flag.IntVar(&s.Warm, "warm", 10, "compiles before anything is measured")
	flag.IntVar(&s.Compiles, "compiles", 300, "compiles to measure with each share")
	flag.IntVar(&s.Waiting, "waiting", 1, "nodes that wait at the same time")
	s.Flags(40*time.Minute, "the servers' files and logs")
	flag.Parse()
	s.Main("verify", s.run)
}

func (s settings) run(ctx context.Context, dir string) error {
	facts, err := catalogrequest.Read(s.Facts)
	if err != nil {
		return err
	}
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		return err
	}
	report := &measure.Report{Name: "verify", Time: time.Now().UTC(), Machine: measure.ThisMachine(), Settings: s}
	first := 0.0
	for i, share := range strings.Split(s.Shares, ",") {
		row, err := s.share(ctx, binary, filepath.Join(dir, fmt.Sprint(i)), share, facts)
		if err != nil {
			return report.Incomplete(os.Stdout, columns, fmt.Errorf("share %s: %w", share, err))
		}
		report.Rows = append(report.Rows, row)
		if i == 0 {
			first = row.Figures["p99_ms"]
			continue
		}
		report.Notes = append(report.Notes, fmt.Sprintf("verify_share %s: p99 of a compile is %.2f times that without", share, row.Figures["p99_ms"]/first))
	}
	return report.Finish(os.Stdout, columns, s.Out)
}

// share measures compiles while a share of them is verified.
func (s settings) share(ctx context.Context, binary, dir, share string, facts catalogrequest.Facts) (row measure.Row, err error) {
	target, err := rivals.StartTutti(ctx, binary, dir, "--verify-share", share, "--verify-after-deploy", "0", "--max-load", "0")
	if err != nil {
		return row, err
	}
	defer func() {
		if stop := target.Stop(); err == nil {
			err = stop
		}
	}()
	if err := target.Deploy(ctx, "production", s.Environment, moduleDir); err != nil {
		return row, err
	}
	conns := make([]*load.Conn, s.Waiting)
	for i := range conns {
		config, err := target.Client(ctx, s.certname(i))
		if err != nil {
			return row, err
		}
		if conns[i], err = load.NewConn(target.URL(), config); err != nil {
			return row, err
		}
		defer conns[i].Close()
	}
	compile := func(ctx context.Context, worker, n int) error {
		request, err := catalogrequest.New(s.certname(worker), facts.Of(s.certname(worker), fmt.Sprintf("12.%d", time.Now().UnixNano()+int64(n))))
		if err != nil {
			return err
		}
		response, err := conns[worker].Patient(ctx, request)
		return load.Expect(request, response, err, http.StatusOK)
	}
	if _, err := load.Run(ctx, load.Plan{Workers: s.Waiting, Total: s.Warm}, compile); err != nil {
		return row, err
	}
	watch, err := measure.Start(ctx, target.Usage)
	if err != nil {
		return row, err
	}
	result, err := load.Run(ctx, load.Plan{Workers: s.Waiting, Total: s.Compiles}, compile)
	span, err := watch.Stop(err)
	if err != nil {
		return row, err
	}
	latency := measure.Summarize(result.Latencies)
	return measure.Row{Server: "tutti", Case: "verify_share " + share, Figures: map[string]float64{
		"requests": float64(s.Compiles), "p50_ms": 1000 * latency.P50.Seconds(), "p99_ms": 1000 * latency.P99.Seconds(),
		"per_s": float64(s.Compiles) / result.Wall.Seconds(), "server_cores": span.Cores(span.Server),
		"client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
	}}, nil
}

func (s settings) certname(i int) string { return fmt.Sprintf("%s-%d.example.org", s.Node, i+1) }
