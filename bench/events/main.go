// Events measures how long it takes from something that happens in a Puppet run until
// who watches has the line. The time of the event is the one that Puppet gave it, on the same clock.
// Method and figures: docs/benchmarks.md.
//
//	go run ./bench/events [-runs 5] [-resources 400] [-streams 200]
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Resources int    `json:"resources"` // of the real catalog: files and notifies in turn
	Runs      int    `json:"runs"`      // of the real agent, in each case
	Streams   int    `json:"streams"`   // simulated nodes in whose runs something happens at the same time
	Each      int    `json:"each"`      // events of one of them
	Every     string `json:"every"`     // how far apart they are

	every        time.Duration
	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.IntVar(&s.Resources, "resources", 400, "resources of the real catalog, files and notifies in turn")
	flag.IntVar(&s.Runs, "runs", 5, "runs of the real agent that are measured")
	flag.IntVar(&s.Streams, "streams", 200, "simulated nodes that stream at once")
	flag.IntVar(&s.Each, "each", 150, "events of one of them")
	flag.DurationVar(&s.every, "every", 100*time.Millisecond, "how far apart those events are")
	s.Flags(20*time.Minute, "the server's and the agent's files and logs")
	flag.Parse()
	s.Every = s.every.String()
	s.Main("events", s.run)
}

var columns = []string{"events", "runs", "p50_ms", "p99_ms", "max_ms", "per_s", "server_cores", "client_cores", "others_cores"}

func (s settings) run(ctx context.Context, dir string) error {
	if s.Resources < 2 || s.Runs < 1 || s.Streams < 1 || s.Each < 1 || s.every <= 0 {
		return fmt.Errorf("-resources is at least 2, -runs, -streams, -each and -every at least 1")
	}
	return measure.Run(measure.Report{Name: "events", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, nil)
}

// measure starts a server, a real agent and simulated ones, and takes them through every case.
func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	return s.Alone(ctx, dir, []string{"--max-load=0"}, func(tutti *rivals.Tutti, binary string) (rows []measure.Row, err error) {
		b := &bench{settings: s, tutti: tutti, binary: binary, dir: dir}
		if err := b.open(ctx); err != nil {
			return nil, err
		}
		defer func() {
			if stop := b.close(); err == nil {
				err = stop
			}
		}()
		return measure.InTurn(ctx, b.alone, b.sims, b.amid)
	})
}
