// Jobs measures orders to a fleet of simulated agents, which lives in this process: how
// long a ping of 2 000 and of all agents takes until all have answered, how long a job over
// all of them takes until everybody has the order and until all rows say how it
// ended, what the API's other users feel of that, what 200 tasks with 1 MB of output each
// do to the server's memory, and how long all agents need to come back after
// their connections broke. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/jobs [-agents 10000] [-targets 2000]
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Agents      int           `json:"agents"`
	Targets     int           `json:"targets"`
	Rounds      int           `json:"rounds"`
	Writers     int           `json:"writers"`
	OutputBytes int           `json:"output_bytes"`
	Asks        int           `json:"asks_per_s"`
	Settle      time.Duration `json:"settle_ns"`

	rivals.Knobs `json:"-"`
	only         string
}

func main() {
	var s settings
	flag.IntVar(&s.Agents, "agents", 10_000, "simulated agents, each with a certificate of its own")
	flag.IntVar(&s.Targets, "targets", 2000, "how many of them the smaller orders go to")
	flag.IntVar(&s.Rounds, "rounds", 5, "orders of a kind, one after the other")
	flag.IntVar(&s.Writers, "writers", 200, "how many agents run a task with much output")
	flag.IntVar(&s.OutputBytes, "output", 1_000_000, "how much each of them writes, in bytes")
	flag.IntVar(&s.Asks, "asks", 20, "questions to the API in a second while jobs run")
	flag.DurationVar(&s.Settle, "settle", 10*time.Second, "time before memory is measured")
	s.Flags(20*time.Minute, "the server's files and logs")
	flag.StringVar(&s.only, "only", "", "idle, ping, job, task, events, output or storm: these cases alone")
	flag.Parse()
	s.Main("jobs", s.run)
}

var columns = []string{
	"agents", "sent_s", "done_s", "p50_s", "max_s", "api_asks", "api_p50_ms", "api_p99_ms", "api_max_ms", "server_cpu_ms_each",
	"asking_cores", "server_cores", "client_cores", "others_cores", "rss_mb", "peak_rss_mb",
}

func (s settings) run(ctx context.Context, dir string) error {
	if err := s.check(); err != nil {
		return err
	}
	return measure.Run(measure.Report{Name: "jobs", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, s.judge)
}

// check looks at what the system has to allow before anything is started.
func (s settings) check() error {
	if s.Targets > s.Agents || s.Writers > s.Agents || s.Targets < 1 || s.Writers < 1 {
		return fmt.Errorf("-targets and -writers are at most -agents")
	}
	return rivals.AllowOpenFiles(s.Agents)
}

// measure starts a server and a fleet and takes them through every case.
func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	args := append([]string{"--broker-controllers", simfleet.ControllerName}, rivals.AsFastAsItCan...)
	return s.Alone(ctx, dir, args, func(tutti *rivals.Tutti, _ string) (rows []measure.Row, err error) {
		b, err := s.open(ctx, tutti, dir)
		if err != nil {
			return nil, err
		}
		defer func() {
			if stop := b.fleet.Close(); err == nil {
				err = stop
			}
		}()
		return measure.InTurn(ctx, b.cases()...)
	})
}

// judge compares with the aims of the design.
func (s settings) judge(rows []measure.Row) []string {
	var notes []string
	aim := func(name, figure string, most float64, text string) {
		notes = append(notes, measure.Below(rows, name, figure, most, text)...)
	}
	aim(pingCase(s.Targets), "max_s", 1, fmt.Sprintf("an action on %d nodes, all answers in, below 1 s", s.Targets))
	aim(allCase, "sent_s", 10, fmt.Sprintf("a job over %d nodes all sent below 10 s", s.Agents))
	aim(allCase, "api_p99_ms", 100, "p99 of the API meanwhile below 100 ms")
	aim(askedCase, "asking_cores", 0.25,
		fmt.Sprintf("%d clients that ask for events of %d nodes without a pause take below a quarter of a core", eventClients, s.Agents))
	return notes
}
