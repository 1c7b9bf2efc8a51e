package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/peers"
	"github.com/tutti-project/tutti/internal/peers/load"
	"github.com/tutti-project/tutti/internal/peers/measure"
	"github.com/tutti-project/tutti/internal/sqlstore"
)

// tutti is our side, on SQLite or on a PostgreSQL of its own.
type tutti struct {
	*peers.Tutti
	name     string
	postgres *peers.Postgres // nil for SQLite
}

// startTutti starts the server on what the directory holds, after filling it.
func (s settings) startTutti(ctx context.Context, name, dir string, l *loaded) (_ *tutti, err error) {
	t := &tutti{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Stop())
		}
	}()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return t, err
	}
	config := sqlstore.Config{Path: filepath.Join(dir, "data", "tutti.db")}
	var args []string
	if name == tuttiPostgres {
		if t.postgres, err = peers.StartPostgres(ctx, dir, postgresSettings...); err != nil {
			return t, err
		}
		if err := t.postgres.MakeDatabase(ctx, "tutti"); err != nil {
			return t, err
		}
		config.URL = t.postgres.URL("tutti")
		args = append(args, "--database", config.URL)
	}
	if !l.full() {
		if err := s.fillStore(ctx, name, config, l); err != nil {
			return t, err
		}
	}
	if s.loadOnly {
		return t, nil
	}
	binary, err := peers.BuildTutti(ctx, dir)
	if err != nil {
		return t, err
	}
	t.Tutti, err = peers.StartTutti(ctx, binary, dir, args...)
	return t, err
}

func (s settings) fillStore(ctx context.Context, name string, config sqlstore.Config, l *loaded) (err error) {
	store, err := sqlstore.Open(ctx, config, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return l.fill(ctx, name, s.Workers, &direct{store: store})
}

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
