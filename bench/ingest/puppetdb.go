package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
)

// puppetDB is the peer: commands are accepted into a queue and processed by
// and by; stored means processed.
type puppetDB struct {
	db    *rivals.PuppetDB
	fleet fleetgen.Fleet
	conns []*load.Conn // one a worker

	sent, reportsSent atomic.Int64
}

func newPuppetDB(db *rivals.PuppetDB, fleet fleetgen.Fleet, workers int) (*puppetDB, error) {
	p := &puppetDB{db: db, fleet: fleet, conns: make([]*load.Conn, workers)}
	for w := range p.conns {
		conn, err := load.NewConn(db.URL(), nil)
		if err != nil {
			return nil, errors.Join(err, db.Stop())
		}
		p.conns[w] = conn
	}
	return p, nil
}

func (p *puppetDB) target() rivals.Target { return p.db }

func (p *puppetDB) prepare(context.Context, int, int) error { return nil }

func (p *puppetDB) body(k kind, node, generation int) []byte {
	if k == factSet {
		return p.fleet.PuppetDBFacts(node, generation)
	}
	return p.fleet.PuppetDBReport(node, generation)
}

func (p *puppetDB) send(ctx context.Context, k kind, worker, node int, body []byte) error {
	command, version := "replace_facts", 5
	if k == runReport {
		command, version = "store_report", 8
		p.reportsSent.Add(1)
	}
	p.sent.Add(1)
	return rivals.Command(ctx, p.conns[worker], command, version, p.fleet.Certname(node), body)
}

func (p *puppetDB) stored(ctx context.Context) error { return p.db.Drain(ctx, int(p.sent.Load())) }

func (p *puppetDB) disconnect() {
	for _, conn := range p.conns {
		conn.Close()
	}
}

func (p *puppetDB) notes(ctx context.Context) ([]string, error) {
	nodes, err1 := p.db.Count(ctx, "factsets")
	stored, err2 := p.db.Count(ctx, "reports")
	database, postgres, err3 := p.db.Parts()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if stored != int(p.reportsSent.Load()) {
		return nil, fmt.Errorf("puppetdb keeps %d reports of %d", stored, p.reportsSent.Load())
	}
	return []string{
		"puppetdb is version " + p.db.Version(ctx),
		fmt.Sprintf("puppetdb keeps %d fact sets and %d reports; %.0f MB of its memory are PuppetDB's, %.0f MB PostgreSQL's",
			nodes, stored, mb(database.PSSBytes), mb(postgres.PSSBytes)),
	}, nil
}
