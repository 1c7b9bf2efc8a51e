// Broker measures agents' connections: what an idle one costs in memory, how
// many come in a second (also by the kind of their keys), how long an order to 2 000 of them takes until all have
// answered, and what is left after that and after a reconnect storm. Method and
// figures: docs/benchmarks.md.
//
//	go run ./bench/broker [-agents 10000] [-targets 2000] [-tls 1.3]
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Agents  int           `json:"agents"`
	Targets int           `json:"targets"`
	ByKey   int           `json:"by_key"`
	Rounds  int           `json:"rounds"`
	Workers int           `json:"workers"`
	TLS     string        `json:"tls"`
	Settle  time.Duration `json:"settle_ns"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.IntVar(&s.Agents, "agents", 10_000, "connections, each with a certificate of its own")
	flag.IntVar(&s.Targets, "targets", 2000, "how many of them an order goes to")
	flag.IntVar(&s.ByKey, "by-key", 2000, "connections of agents with each kind of key")
	flag.IntVar(&s.Rounds, "rounds", 10, "orders, one after the other")
	flag.IntVar(&s.Workers, "workers", 32, "connections that are made at the same time")
	flag.StringVar(&s.TLS, "tls", "1.3", "version of TLS: 1.2 (as pxp-agent) or 1.3")
	flag.DurationVar(&s.Settle, "settle", 15*time.Second, "time before memory is measured")
	s.Flags(15*time.Minute, "the server's files and logs")
	flag.Parse()
	s.Main("broker", s.run)
}

var columns = []string{
	"connections", "per_s", "orders_p50_ms", "orders_max_ms", "server_cpu_ms_each", "server_cores", "client_cores", "others_cores",
	"rss_mb", "pss_mb", "kb_each",
}

func (s settings) run(ctx context.Context, dir string) error {
	if err := s.check(); err != nil {
		return err
	}
	return measure.Run(measure.Report{Name: "broker", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, s.judge)
}

// check looks at what the system has to allow before anything is started.
func (s settings) check() error {
	if s.TLS != "1.2" && s.TLS != "1.3" || s.Targets > s.Agents || s.Targets < 1 || s.ByKey < 1 {
		return fmt.Errorf("-tls is 1.2 or 1.3, -targets at most -agents, -by-key at least 1")
	}
	return rivals.AllowOpenFiles(s.Agents)
}

// measure starts a server and takes it through every case.
func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	return s.Alone(ctx, dir, []string{"--broker-controllers", "controller"}, func(tutti *rivals.Tutti, _ string) (rows []measure.Row, err error) {
		ca, err := authority.Open(filepath.Join(dir, "server", "data"))
		if err != nil {
			return nil, err
		}
		f, err := newFleet(ca, tutti.URL()[len("https://"):], s)
		if err != nil {
			return nil, err
		}
		b := &bench{settings: s, tutti: tutti, fleet: f}
		defer func() { b.fleet.close() }() // the last one
		cases := []func(context.Context) (measure.Row, error){b.empty, b.connect, b.idle, b.orders, b.afterwards, b.storm, b.afterStorm}
		for _, kind := range slices.Sorted(maps.Keys(keyKinds)) {
			cases = append(cases, b.connectWith(kind))
		}
		return measure.InTurn(ctx, cases...)
	})
}

// judge compares the memory with what it was to be at most: 16 KiB each and 60 MB.
func (s settings) judge(rows []measure.Row) []string {
	const base, each = 60e6, 16 << 10
	bound := base + float64(each*s.Agents)
	for _, row := range rows {
		if got := row.Figures["rss_mb"] * 1e6; row.Case == "idle" {
			return []string{"aim: at most " + strconv.Itoa(int(bound/1e6)) + " MB resident with all agents idle; met: " + strconv.FormatBool(got <= bound)}
		}
	}
	return nil
}
