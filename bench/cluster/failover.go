package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// across pings agents of the last server, one after the other, from a controller at the first one.
func (w *work) across(ctx context.Context) (measure.Row, error) {
	c, err := simfleet.NewController(ctx, w.servers[0], w.ca, 1)
	if err != nil {
		return measure.Row{}, err
	}
	defer c.Close()
	there := w.agents[len(w.agents)-1].names
	return w.watched(ctx, acrossCase, w.Pings, func() (map[string]float64, error) {
		var took []time.Duration
		for i := range w.Pings {
			one, err := c.Ping(ctx, there[i%len(there):][:1])
			if err != nil {
				return nil, err
			}
			took = append(took, one)
		}
		latency := measure.Summarize(took)
		return map[string]float64{"p50_ms": ms(latency.P50), "p99_ms": ms(latency.P99), "max_ms": ms(latency.Max)}, nil
	})
}

// killed kills the server that has most leases, and waits until its agents and its leases are with others.
func (w *work) killed(ctx context.Context) (measure.Row, error) {
	victim, name, err := w.busiest(ctx)
	if err != nil {
		return measure.Row{}, err
	}
	var asked *api.Client
	for i, s := range w.servers {
		if i != victim {
			if asked, err = s.API(); err != nil {
				return measure.Row{}, err
			}
		}
	}
	begin := time.Now()
	if err := w.servers[victim].Kill(); err != nil {
		return measure.Row{}, err
	}
	var agents, leases time.Duration
	lost := w.agents[victim]
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		err := lost.AwaitConnected(ctx, begin)
		agents = time.Since(begin)
		return err
	})
	both.Go(func() error {
		err := awaitLeases(ctx, asked, name)
		leases = time.Since(begin)
		return err
	})
	err = both.Wait()
	return measure.Ours(killedCase, map[string]float64{"lost": float64(len(lost.names)), "agents_s": agents.Seconds(), "leases_s": leases.Seconds()}), err
}

// busiest is the server that has most leases, by its place and its name.
func (w *work) busiest(ctx context.Context) (place int, name string, err error) {
	most := -1
	for i, s := range w.servers {
		client, err := s.API()
		if err != nil {
			return 0, "", err
		}
		status, err := api.ClusterStatus.Call(ctx, client, api.Nothing{})
		if err != nil {
			return 0, "", err
		}
		if held := len(leasesOf(status, status.Answered)); held > most {
			place, name, most = i, status.Answered, held
		}
	}
	if most == 0 {
		return 0, "", errors.New("no server has a lease")
	}
	return place, name, nil
}

func leasesOf(status api.Cluster, server string) (held []string) {
	for _, l := range status.Leases {
		if l.State == api.LeaseHeld && l.Server == server {
			held = append(held, l.Lease)
		}
	}
	return held
}

// awaitLeases returns when others hold all that a server held.
func awaitLeases(ctx context.Context, asked *api.Client, server string) error {
	var had []string
	for {
		status, err := api.ClusterStatus.Call(ctx, asked, api.Nothing{})
		if err != nil {
			return err
		}
		if had == nil {
			if had = leasesOf(status, server); len(had) == 0 {
				return errors.New("the leases of the killed server had moved before anybody looked")
			}
		}
		left := slices.Clone(had)
		for _, l := range status.Leases {
			if l.State == api.LeaseHeld && l.Server != server {
				left = slices.DeleteFunc(left, func(lease string) bool { return lease == l.Lease })
			}
		}
		if len(left) == 0 {
			return nil
		}
		if err := measure.Settle(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("nobody has taken %v: %w", left, err)
		}
	}
}
