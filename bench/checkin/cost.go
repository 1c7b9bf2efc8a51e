package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

var sizes = []string{"small", "medium", "large"}

var columns = []string{
	"requests", "cpu_ms_each", "p50_ms", "p99_ms", "per_s", "served", "files_per_s", "file_p50_ms", "file_p99_ms",
	"wall_s", "server_cores", "client_cores", "files_cores", "others_cores",
}

// client is one node that asks for its catalog.
type client struct {
	target rivals.Target
	facts  catalogrequest.Facts
	node   string
	conn   *load.Conn
	serial int
}

// cost measures what a catalog costs, compiled and unchanged.
func (s settings) cost(ctx context.Context, target rivals.Target, facts catalogrequest.Facts) (rows []measure.Row, err error) {
	warm := s.WarmTutti
	if target.Name() == "puppetserver" {
		warm = s.WarmPeer
	}
	for _, size := range sizes {
		node := size + "-1.example.org"
		config, err := target.Client(ctx, node)
		if err != nil {
			return rows, err
		}
		conn, err := load.NewConn(target.URL(), config)
		if err != nil {
			return rows, err
		}
		c := &client{target: target, facts: facts, node: node, conn: conn}
		more, err := c.all(ctx, size, warm, s)
		conn.Close()
		if rows = append(rows, more...); err != nil {
			return rows, fmt.Errorf("%s: %w", size, err)
		}
	}
	return rows, nil
}

func (c *client) all(ctx context.Context, size string, warm int, s settings) ([]measure.Row, error) {
	if _, err := c.repeat(ctx, warm, c.changed); err != nil {
		return nil, err
	}
	cases := []func(context.Context) (measure.Row, error){
		func(ctx context.Context) (measure.Row, error) {
			return c.measure(ctx, size+" compiled", s.Compiles, c.changed)
		},
	}
	if c.target.Name() == "tutti" {
		cases = append(cases,
			func(ctx context.Context) (measure.Row, error) {
				return c.measure(ctx, size+" unchanged", s.CheckIns, c.unchanged)
			},
			func(ctx context.Context) (measure.Row, error) {
				return c.measure(ctx, size+" unchanged, new connection", s.CheckIns, func(ctx context.Context) error {
					c.conn.Close()
					return c.unchanged(ctx)
				})
			},
		)
	}
	rows, err := measure.InTurn(ctx, cases...)
	fmt.Fprintf(os.Stderr, "%s: %s measured\n", c.target.Name(), size)
	return rows, err
}

// changed asks with a value of a fact that the catalog reads and no request had
// before.
func (c *client) changed(ctx context.Context) error {
	c.serial++
	return c.unchanged(ctx)
}

// unchanged asks with the facts of the last request.
func (c *client) unchanged(ctx context.Context) error {
	request, err := catalogrequest.New(c.node, c.facts.Of(c.node, fmt.Sprintf("12.%d", 1000+c.serial)))
	if err != nil {
		return err
	}
	response, err := c.conn.Patient(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}

func (c *client) repeat(ctx context.Context, n int, do func(context.Context) error) (load.Result, error) {
	return load.Run(ctx, load.Plan{Workers: 1, Total: n}, func(ctx context.Context, _, _ int) error { return do(ctx) })
}

func (c *client) measure(ctx context.Context, name string, n int, do func(context.Context) error) (measure.Row, error) {
	watch, err := measure.Start(ctx, c.target.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	result, err := c.repeat(ctx, n, do)
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	latency := measure.Summarize(result.Latencies)
	return measure.Row{Server: c.target.Name(), Case: name, Figures: map[string]float64{
		"requests": float64(n), "cpu_ms_each": 1000 * span.Server.Seconds() / float64(n),
		"p50_ms": 1000 * latency.P50.Seconds(), "p99_ms": 1000 * latency.P99.Seconds(), "per_s": float64(n) / result.Wall.Seconds(),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
	}}, nil
}

// judge says how many times less CPU an unchanged catalog costs than a compiled one.
func judge(rows []measure.Row) (notes []string) {
	const aim = 200
	cpu := map[string]float64{}
	for _, row := range rows {
		cpu[row.Server+" "+row.Case] = row.Figures["cpu_ms_each"]
	}
	for _, size := range sizes {
		for _, how := range []string{" unchanged", " unchanged, new connection"} {
			for _, peer := range []string{"tutti", "puppetserver"} {
				unchanged, compiled := cpu["tutti "+size+how], cpu[peer+" "+size+" compiled"]
				if unchanged > 0 && compiled > 0 {
					notes = append(notes, fmt.Sprintf("%s%s: %.0f times less CPU than %s takes to compile it; aim %d, met: %t",
						size, how, compiled/unchanged, peer, aim, compiled/unchanged >= aim))
				}
			}
		}
	}
	return notes
}
