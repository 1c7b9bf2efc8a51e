package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals/load"
)

// acknowledged is what the server answered 200 to.
type acknowledged struct {
	mu      sync.Mutex
	facts   []int // nodes
	reports []int
}

func (a *acknowledged) add(k kind, node int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k == factSet {
		a.facts = append(a.facts, node)
	} else {
		a.reports = append(a.reports, node)
	}
}

// survive sends one more generation of facts and reports, kills the server
// when half of them are acknowledged, starts it again and looks for each of
// those.
func (t *tutti) survive(ctx context.Context, workers, generation int) (string, error) {
	total := 2 * len(t.conns)
	var acks acknowledged
	var count atomic.Int64
	half := make(chan struct{})
	killed := make(chan error, 1)
	go func() {
		select {
		case <-half:
			killed <- t.server.Kill()
		case <-ctx.Done():
			killed <- ctx.Err()
		}
	}()
	_, err := load.Run(ctx, load.Plan{Workers: workers, Total: len(t.conns)}, func(ctx context.Context, worker, node int) error {
		for _, k := range []kind{factSet, runReport} { // one after the other: a node has one connection
			if err := t.send(ctx, k, worker, node, t.body(k, node, generation)); err != nil {
				return err
			}
			acks.add(k, node)
			if count.Add(1) == int64(total/2) {
				close(half)
			}
		}
		return nil
	})
	if count.Load() < int64(total/2) {
		return "", fmt.Errorf("requests failed before the server was killed: %w", err)
	}
	if err := <-killed; err != nil {
		return "", fmt.Errorf("kill the server: %w", err)
	}
	t.disconnect()
	begin := time.Now()
	restart, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := t.server.Restart(restart); err != nil {
		return "", fmt.Errorf("start again after kill -9: %w", err)
	}
	back := time.Since(begin)
	if err := t.look(ctx, &acks, generation); err != nil {
		return "", fmt.Errorf("after kill -9: %w", err)
	}
	return fmt.Sprintf("kill -9 after %d fact sets and %d reports were acknowledged: all of them are there, running again after %.1f s",
		len(acks.facts), len(acks.reports), back.Seconds()), nil
}

// look asks the API for everything acknowledged.
func (t *tutti) look(ctx context.Context, acks *acknowledged, generation int) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	for _, node := range acks.facts {
		if err := t.hasFacts(ctx, client, node, generation); err != nil {
			return err
		}
	}
	stored := map[string]bool{}
	list := func(after string) api.ReportListRequest { return api.ReportListRequest{After: after, Limit: 1000} }
	if err := api.All(ctx, client, api.ReportList, list, func(r api.Report) error {
		stored[r.TransactionUUID] = true
		return nil
	}); err != nil {
		return err
	}
	for _, node := range acks.reports {
		if !stored[t.fleet.TransactionUUID(node, generation)] {
			return fmt.Errorf("the acknowledged report of %s is gone (%d are there)", t.fleet.Certname(node), len(stored))
		}
	}
	return nil
}

func (t *tutti) hasFacts(ctx context.Context, client *api.Client, node, generation int) error {
	facts, err := api.NodeFacts.Call(ctx, client, api.NameRequest{Name: t.fleet.Certname(node)})
	if err != nil {
		return err
	}
	var values map[string]any
	if err := json.Unmarshal(facts.Values, &values); err != nil {
		return err
	}
	if serial, ok := values[fleetgen.SerialFact].(float64); !ok || int(serial) != generation {
		return fmt.Errorf("the acknowledged facts of %s are gone: %s is %v, want %d", t.fleet.Certname(node), fleetgen.SerialFact,
			values[fleetgen.SerialFact], generation)
	}
	return nil
}

func (t *tutti) client() (*api.Client, error) {
	token, err1 := os.ReadFile(t.server.TokenPath())
	bundle, err2 := os.ReadFile(t.server.CAPath())
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return api.NewClient(api.ClientConfig{Server: t.server.LocalhostURL(), Token: string(token), CAPEM: bundle})
}
