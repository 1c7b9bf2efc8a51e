package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
)

// postgresSettings are what an administrator of a PuppetDB of this size would set
// on a machine with 24 GB; everything else is PostgreSQL's default. Both PuppetDB's
// cluster and Tutti's have them.
var postgresSettings = []string{
	"shared_buffers=2GB", "effective_cache_size=8GB", "work_mem=32MB", "maintenance_work_mem=256MB", "random_page_cost=1.1",
	"max_wal_size=4GB", "checkpoint_timeout=15min", "statement_timeout=45s",
}

func (s settings) startPuppetDB(ctx context.Context, dir string) (*puppetDB, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	db, err := rivals.StartPuppetDBWith(ctx, dir, rivals.PuppetDBConfig{Heap: s.Heap, Threads: 2, Keep: true, Postgres: postgresSettings})
	if err != nil {
		return nil, err
	}
	p := &puppetDB{PuppetDB: db, conns: make([]*load.Conn, s.Workers)}
	for w := range p.conns {
		if p.conns[w], err = load.NewConn(db.URL(), nil); err != nil {
			return nil, errors.Join(err, db.Stop())
		}
	}
	return p, nil
}

// puppetDB is the peer. A command is accepted first and stored by and by.
type puppetDB struct {
	*rivals.PuppetDB
	conns []*load.Conn // one a worker
	sent  atomic.Int64

	asking sync.Mutex // the connection that asks how many are stored is one
}

func (p *puppetDB) send(ctx context.Context, worker int, c command) error {
	p.sent.Add(1)
	return rivals.Command(ctx, p.conns[worker], c.name, c.version, c.node, c.body)
}

func (p *puppetDB) drain(ctx context.Context, few int) error {
	p.asking.Lock()
	defer p.asking.Unlock()
	return p.Drain(ctx, int(p.sent.Load())-few)
}

func (p *puppetDB) conn(context.Context) (*load.Conn, http.Header, error) {
	conn, err := load.NewConn(p.URL(), nil)
	return conn, nil, err
}
