package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

func pingCase(targets int) string { return fmt.Sprintf("ping of %d", targets) }

// ping orders over the broker, as a controller: the action ping of the module ping, which agents
// answer at once. It takes from the first request to the last answer.
func (b *bench) ping(targets int) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		c, err := simfleet.NewController(ctx, b.tutti, b.ca, b.Agents)
		if err != nil {
			return measure.Row{}, err
		}
		defer c.Close()
		return b.watched(ctx, pingCase(targets), targets*b.Rounds, func() (map[string]float64, error) {
			var took []time.Duration
			for range b.Rounds {
				one, err := c.Ping(ctx, b.names[:targets])
				if err != nil {
					return nil, err
				}
				took = append(took, one)
			}
			latency := measure.Summarize(took)
			return map[string]float64{"p50_s": latency.P50.Seconds(), "max_s": latency.Max.Seconds()}, nil
		})
	}
}
