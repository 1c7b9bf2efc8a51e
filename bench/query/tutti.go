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
)

// tutti is our side, on SQLite or on a PostgreSQL of its own.
type tutti struct {
	*rivals.Tutti
	name string

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
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		return t, err
	}
	if name == tuttiPostgres {
		t.Tutti, err = rivals.StartTuttiOnPostgres(ctx, binary, dir, postgresSettings)
	} else {
		t.Tutti, err = rivals.StartTutti(ctx, binary, dir)
	}
	if err != nil {
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
	if err := l.fill(ctx, name, s.Workers, t); err != nil {
		return t, err
	}
	return t, t.Analyze(ctx)
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
	for _, conn := range t.conns {
		conn.Close()
	}
	if t.Tutti == nil {
		return nil
	}
	return t.Tutti.Stop()
}

const (
	tuttiSQLite   = "tutti-sqlite"
	tuttiPostgres = "tutti-postgres"
	puppetdb      = "puppetdb"
)

var errNoPeer = fmt.Errorf("no such server; have %s, %s, %s", tuttiSQLite, tuttiPostgres, puppetdb)
