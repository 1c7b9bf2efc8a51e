package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// The cases, in the order in which they are run.
const (
	firstFacts   = "facts, first set"
	changedFacts = "facts, few changed"
	reports      = "reports"
	afterwards   = "afterwards"
)

var columns = []string{"stored", "per_s", "per_cpu_s", "cpu_ms_each", "p50_ms", "p99_ms", "server_cores", "client_cores", "others_cores", "pss_mb", "rss_mb"}

// kind is what is sent.
type kind int

const (
	factSet kind = iota
	runReport
)

// store is a server that takes facts and reports. Its methods may be called by
// many workers, each with its own number.
type store interface {
	target() rivals.Target
	// prepare does what is not to be timed, such as connecting.
	prepare(ctx context.Context, worker, node int) error
	// body writes what a node sends in a generation; it is not timed either.
	body(k kind, node, generation int) []byte
	send(ctx context.Context, k kind, worker, node int, body []byte) error
	// stored returns when all that was sent until now is stored.
	stored(ctx context.Context) error
	// disconnect closes all connections, as agents do when their run is over.
	disconnect()
	// notes checks that all is there and says what else is worth knowing.
	notes(ctx context.Context) ([]string, error)
}

// bench measures one store.
type bench struct {
	settings
	name  string
	store store
}

func (b *bench) all(ctx context.Context, rounds int) ([]measure.Row, error) {
	prepare := load.Plan{Workers: b.Workers, Total: b.Nodes}
	if _, err := load.Run(ctx, prepare, b.store.prepare); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	var rows []measure.Row
	for _, step := range []struct {
		name          string
		kind          kind
		first, rounds int
	}{{firstFacts, factSet, 0, 1}, {changedFacts, factSet, 1, rounds}, {reports, runReport, 1, rounds}} {
		row, err := b.measure(ctx, step.name, step.kind, step.first, step.rounds)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", step.name, err)
		}
		rows = append(rows, row)
		fmt.Fprintf(os.Stderr, "%s: %s measured\n", b.name, step.name)
	}
	b.store.disconnect()
	row, err := b.memory(ctx)
	return append(rows, row), err
}

// measure sends what every node says in some generations, and takes the time
// until the last of each generation is stored.
func (b *bench) measure(ctx context.Context, name string, k kind, first, rounds int) (measure.Row, error) {
	var latencies []time.Duration
	var total measure.Span
	for generation := first; generation < first+rounds; generation++ {
		result, span, err := b.round(ctx, k, generation)
		if err != nil {
			return measure.Row{}, err
		}
		latencies = append(latencies, result.Latencies...)
		total.Wall, total.Server, total.Others = total.Wall+span.Wall, total.Server+span.Server, total.Others+span.Others
		total.Clients += span.Clients
		total.End = span.End
	}
	latency, n := measure.Summarize(latencies), float64(len(latencies))
	return measure.Row{Server: b.name, Case: name, Figures: map[string]float64{
		"stored": n, "per_s": n / total.Wall.Seconds(), "per_cpu_s": n / total.Server.Seconds(), "cpu_ms_each": 1000 * total.Server.Seconds() / n,
		"p50_ms": ms(latency.P50), "p99_ms": ms(latency.P99), "pss_mb": mb(total.End.PSSBytes), "rss_mb": mb(total.End.RSSBytes),
		"server_cores": total.Cores(total.Server), "client_cores": total.Cores(total.Clients), "others_cores": total.Cores(total.Others),
	}}, nil
}

func (b *bench) round(ctx context.Context, k kind, generation int) (load.Result, measure.Span, error) {
	bodies, err := b.bodies(ctx, k, generation)
	if err != nil {
		return load.Result{}, measure.Span{}, err
	}
	watch, err := measure.Start(ctx, b.store.target().Usage)
	if err != nil {
		return load.Result{}, measure.Span{}, err
	}
	result, err := load.Run(ctx, load.Plan{Workers: b.Workers, Total: b.Nodes}, func(ctx context.Context, worker, node int) error {
		return b.store.send(ctx, k, worker, node, bodies[node])
	})
	if err == nil {
		err = b.store.stored(ctx)
	}
	span, err := watch.Stop(err)
	return result, span, err
}

// bodies writes beforehand what one round sends, so that the clients have
// nothing to do but send.
func (b *bench) bodies(ctx context.Context, k kind, generation int) ([][]byte, error) {
	bodies := make([][]byte, b.Nodes)
	_, err := load.Run(ctx, load.Plan{Workers: 2, Total: b.Nodes}, func(_ context.Context, _, node int) error {
		bodies[node] = b.store.body(k, node, generation)
		return nil
	})
	return bodies, err
}

// memory waits a little with no load, then looks: what a server holds on to.
func (b *bench) memory(ctx context.Context) (measure.Row, error) {
	select {
	case <-ctx.Done():
		return measure.Row{}, ctx.Err()
	case <-time.After(5 * time.Second):
	}
	usage, err := b.store.target().Usage()
	return measure.Row{Server: b.name, Case: afterwards, Figures: map[string]float64{
		"pss_mb": mb(usage.PSSBytes), "rss_mb": mb(usage.RSSBytes),
	}}, err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
func mb(n int64) float64         { return float64(n) / 1e6 }
