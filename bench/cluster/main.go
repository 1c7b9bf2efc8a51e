// Cluster measures what several servers cost and how soon they stand in for each other: the same check-ins and the same job with one server and with
// three, which share a PostgreSQL, an S3 store and a NATS; how long a ping takes from a controller at one server to an agent at another; how
// long agents and leases of a killed server take to be with others. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/cluster [-agents 3000] [-nodes 300]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Servers int    `json:"servers"`
	Agents  int    `json:"agents"` // connected to the servers' brokers
	Nodes   int    `json:"nodes"`  // that check in
	Rounds  int    `json:"rounds"` // check-ins of each
	Workers int    `json:"workers"`
	Pings   int    `json:"pings"`
	Facts   string `json:"facts"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.IntVar(&s.Servers, "servers", 3, "how many servers there are at last")
	flag.IntVar(&s.Agents, "agents", 3000, "simulated agents, each with a certificate of its own")
	flag.IntVar(&s.Nodes, "nodes", 300, "nodes that check in")
	flag.IntVar(&s.Rounds, "rounds", 10, "check-ins of each, and jobs over all agents")
	flag.IntVar(&s.Workers, "workers", 4, "nodes that check in at a time")
	flag.IntVar(&s.Pings, "pings", 500, "pings across servers, one after the other")
	flag.StringVar(&s.Facts, "facts", "internal/compiler/ruby/testdata/facts/debian12.json", "facts of a node")
	s.Flags(30*time.Minute, "the servers' files and logs")
	flag.Parse()
	s.Main("cluster", s.run)
}

var columns = []string{
	"done", "cpu_ms_each", "servers_ms_each", "per_s", "p50_ms", "p99_ms", "max_ms", "lost", "agents_s", "leases_s", "done_s",
	"server_cores", "client_cores", "others_cores", "peak_rss_mb",
}

func (s settings) run(ctx context.Context, dir string) error {
	if s.Servers < 2 || s.Nodes < 1 || s.Rounds < 1 || s.Agents < s.Servers || s.Workers < 1 || s.Pings < 1 {
		return errors.New("-servers is at least 2, -agents at least as many, and -nodes, -rounds, -workers and -pings at least 1")
	}
	if err := rivals.AllowOpenFiles(s.Agents + s.Nodes); err != nil {
		return err
	}
	return measure.Run(measure.Report{Name: "cluster", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, s.judge)
}

// measure has one server do the work, then all of them.
func (s settings) measure(ctx context.Context, dir string) (rows []measure.Row, err error) {
	c, err := startCluster(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.join(ctx); err != nil {
		return nil, err
	}
	w, err := s.newWork(ctx, c)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if rows, err = w.all(ctx); err != nil {
		return rows, err
	}
	for len(c.servers) < s.Servers {
		if err := c.join(ctx); err != nil {
			return rows, err
		}
	}
	more, err := w.all(ctx)
	if rows = append(rows, more...); err != nil {
		return rows, err
	}
	more, err = measure.InTurn(ctx, w.across, w.killed)
	return append(rows, more...), err
}

func withServers(name string, servers int) string {
	if servers == 1 {
		return name + ", one server"
	}
	return fmt.Sprintf("%s, %d servers", name, servers)
}

// judge compares with the aims.
func (s settings) judge(rows []measure.Row) (notes []string) {
	cpu := map[string]float64{}
	for _, row := range rows {
		cpu[row.Case] = row.Figures["cpu_ms_each"]
	}
	for _, name := range []string{checkInCase, reportCase, jobCase} {
		one, all := cpu[withServers(name, 1)], cpu[withServers(name, s.Servers)]
		if one > 0 && all > 0 {
			notes = append(notes, fmt.Sprintf("aim: %s: %d servers take at most 1.15 times the CPU of one, database and messages included: %.2f; met: %t",
				name, s.Servers, all/one, all/one <= 1.15))
		}
	}
	for _, servers := range []int{1, s.Servers} {
		notes = append(notes, measure.Below(rows, withServers(checkInCase, servers), "servers_ms_each", 3,
			"a check-in that changes nothing below 3 ms of the servers' CPU")...)
	}
	notes = append(notes, measure.Below(rows, withServers(acrossCase, s.Servers), "p99_ms", 50,
		"p99 of a ping from a controller at one server to an agent at another and back below 50 ms")...)
	notes = append(notes, measure.Below(rows, killedCase, "agents_s", 30,
		fmt.Sprintf("agents of a killed server connected elsewhere in 30 s, with %d agents", s.Agents))...)
	return append(notes, measure.Below(rows, killedCase, "leases_s", 15, "leases of a killed server with others in 15 s")...)
}
