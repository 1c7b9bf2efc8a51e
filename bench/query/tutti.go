package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// tutti is our side, on SQLite or on a PostgreSQL of its own.
type tutti struct {
	*rivals.Tutti
	name     string
	postgres *rivals.Postgres // nil for SQLite

	conns  []*load.Conn // one a worker
	header http.Header
}

// startTutti starts the server on what the directory holds, and fills it.
func (s settings) startTutti(ctx context.Context, name, dir string, l *loaded) (_ *tutti, err error) {
	t := &tutti{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Stop())
		}
	}()
	var args []string
	if name == tuttiPostgres {
		if t.postgres, err = rivals.StartPostgres(ctx, dir, postgresSettings...); err != nil {
			return t, err
		}
		if err := t.postgres.MakeDatabase(ctx, "tutti"); err != nil {
			return t, err
		}
		args = append(args, "--database", t.postgres.URL("tutti"))
	}
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		return t, err
	}
	if t.Tutti, err = rivals.StartTutti(ctx, binary, dir, args...); err != nil {
		return t, err
	}
	for range s.Workers {
		conn, header, err := t.conn(ctx)
		if err != nil {
			return t, err
		}
		header.Set("Content-Type", "application/json")
		t.conns, t.header = append(t.conns, conn), header
	}
	if err := l.fill(ctx, name, s.Workers, t); err != nil || t.postgres == nil {
		return t, err
	}
	return t, t.postgres.Analyze(ctx, "tutti")
}

// send stores a command: an answer means committed.
func (t *tutti) send(ctx context.Context, worker int, c command) error {
	request := load.Request{
		Method: http.MethodPost, Path: fmt.Sprintf("/pdb/cmd/v1?command=%s&version=%d&certname=%s", c.name, c.version, c.node),
		Header: t.header, Body: c.body,
	}
	response, err := t.conns[worker].Patient(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}

func (t *tutti) drain(context.Context, int) error { return nil }

func (t *tutti) Name() string { return t.name }

func (t *tutti) Usage() (measure.Usage, error) {
	usage, err := t.Tutti.Usage()
	if err != nil || t.postgres == nil {
		return usage, err
	}
	database, err := t.postgres.Usage()
	usage.CPU += database.CPU
	usage.PSSBytes += database.PSSBytes
	usage.RSSBytes += database.RSSBytes
	usage.Processes += database.Processes
	return usage, err
}

// conn is a connection of the administrator, who may ask.
func (t *tutti) conn(context.Context) (*load.Conn, http.Header, error) {
	token, err1 := os.ReadFile(t.TokenPath())
	bundle, err2 := os.ReadFile(t.CAPath())
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	conn, err := load.NewConn(t.LocalhostURL(), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	return conn, http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}}, err
}

func (t *tutti) Stop() error {
	var errs []error
	for _, conn := range t.conns {
		conn.Close()
	}
	if t.Tutti != nil {
		errs = append(errs, t.Tutti.Stop())
	}
	if t.postgres != nil {
		errs = append(errs, t.postgres.Stop())
	}
	return errors.Join(errs...)
}

const (
	tuttiSQLite   = "tutti-sqlite"
	tuttiPostgres = "tutti-postgres"
	puppetdb      = "puppetdb"
)

var errNoPeer = fmt.Errorf("no such server; have %s, %s, %s", tuttiSQLite, tuttiPostgres, puppetdb)
