package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
)

// tutti is our side. Each node has its own certificate and its own connection,
// opened before the clock starts; an answer means committed.
type tutti struct {
	server *rivals.Tutti
	fleet  fleetgen.Fleet
	conns  []*load.Conn // one a node

	workers, nextGeneration int

	factsSent, reportsSent atomic.Int64
}

// onPostgres is our side with the records in PostgreSQL, which counts as a part of the server, as PuppetDB's does.
const onPostgres = "tutti-postgres"

func (s settings) startTutti(ctx context.Context, name, dir string, fleet fleetgen.Fleet) (*tutti, error) {
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		return nil, err
	}
	start := rivals.StartTutti
	if name == onPostgres {
		start = func(ctx context.Context, binary, dir string, args ...string) (*rivals.Tutti, error) {
			return rivals.StartTuttiOnPostgres(ctx, binary, dir, nil, args...)
		}
	}
	server, err := start(ctx, binary, dir)
	if err != nil {
		return nil, err
	}
	return &tutti{
		server: server, fleet: fleet, conns: make([]*load.Conn, s.Nodes), workers: s.Workers, nextGeneration: s.Rounds + 1,
	}, nil
}

func (t *tutti) target() rivals.Target { return t.server }

// prepare enrols a node and opens its connection.
func (t *tutti) prepare(ctx context.Context, _, node int) error {
	config, err := t.server.Client(ctx, t.fleet.Certname(node))
	if err != nil {
		return err
	}
	conn, err := load.NewConn(t.server.URL(), config)
	if err != nil {
		return err
	}
	conn.BufferBytes = 4 << 10
	t.conns[node] = conn
	request := load.Request{Path: "/status/v1/simple"}
	response, err := conn.Fetch(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}

func (t *tutti) body(k kind, node, generation int) []byte {
	if k == factSet {
		return t.fleet.PuppetFacts(node, generation)
	}
	return t.fleet.PuppetReport(node, generation)
}

func (t *tutti) send(ctx context.Context, k kind, _, node int, body []byte) error {
	what, sent := "facts", &t.factsSent
	if k == runReport {
		what, sent = "report", &t.reportsSent
	}
	request := load.Request{
		Method: http.MethodPut, Path: fmt.Sprintf("/puppet/v3/%s/%s?environment=production", what, t.fleet.Certname(node)),
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "X-Puppet-Version": {"7.23.0"}}, Body: body,
	}
	response, err := t.conns[node].Patient(ctx, request)
	if err := load.Expect(request, response, err, http.StatusOK); err != nil {
		return err
	}
	sent.Add(1)
	return nil
}

// stored has nothing to wait for: what was acknowledged is committed.
func (t *tutti) stored(context.Context) error { return nil }

func (t *tutti) disconnect() {
	for _, conn := range t.conns {
		conn.Close()
	}
}

func (t *tutti) notes(ctx context.Context) ([]string, error) {
	summary := fmt.Sprintf("tutti is version %s; it acknowledged %d fact sets and %d reports",
		t.server.Version(ctx), t.factsSent.Load(), t.reportsSent.Load())
	survived, err := t.survive(ctx, t.workers, t.nextGeneration)
	return []string{summary, survived}, err
}
