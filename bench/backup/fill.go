package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals/load"
)

// data is the server's data directory.
func (b *bench) data() string { return filepath.Join(b.dir, "server", "data") }

// open makes the connections of the administrator, who may store what nodes would send.
func (b *bench) open() (err error) {
	if b.ca, err = authority.Open(b.data()); err != nil {
		return err
	}
	token, err1 := os.ReadFile(b.tutti.TokenPath())
	bundle, err2 := os.ReadFile(b.tutti.CAPath())
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	b.fleet = fleetgen.Fleet{Seed: 1, Base: time.Now().UTC().Add(-24 * time.Hour).Truncate(time.Second)}
	b.header = http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}, "Content-Type": {"application/json"}}
	for range b.Workers {
		conn, err := load.NewConn(b.tutti.LocalhostURL(), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
		if err != nil {
			return err
		}
		b.conns = append(b.conns, conn)
	}
	return nil
}

func (b *bench) close() {
	for _, conn := range b.conns {
		conn.Close()
	}
	b.away.stop()
}

// fill gives every node facts, a catalog, a report and a piece of content.
func (b *bench) fill(ctx context.Context) error {
	stages := []struct {
		name string
		do   func(ctx context.Context, worker, node int) error
	}{
		{"facts", b.storeFacts},
		{"catalogs", func(ctx context.Context, worker, node int) error {
			return b.command(ctx, worker, node, "replace_catalog", 9, b.fleet.PuppetDBCatalog(node))
		}},
		{"reports", func(ctx context.Context, worker, node int) error {
			return b.command(ctx, worker, node, "store_report", 8, b.fleet.PuppetDBReport(node, 0))
		}},
		{"content", func(ctx context.Context, _, node int) error { return b.content(ctx, node, 1) }},
	}
	for _, stage := range stages {
		result, err := load.Run(ctx, load.Plan{Workers: b.Workers, Total: b.Nodes}, stage.do)
		if err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
		fmt.Fprintf(os.Stderr, "backup: %s of %d nodes are stored, after %.0f s\n", stage.name, b.Nodes, result.Wall.Seconds())
	}
	return nil
}

// storeFacts stores the n-th fact set: each node's first, then each node's second, and so on.
func (b *bench) storeFacts(ctx context.Context, worker, n int) error {
	return b.command(ctx, worker, n%b.Nodes, "replace_facts", 5, b.fleet.PuppetDBFacts(n%b.Nodes, n/b.Nodes))
}

func (b *bench) command(ctx context.Context, worker, node int, name string, version int, body []byte) error {
	request := load.Request{
		Method: http.MethodPost, Header: b.header, Body: body,
		Path: fmt.Sprintf("/pdb/cmd/v1?command=%s&version=%d&certname=%s", name, version, b.fleet.Certname(node)),
	}
	response, err := b.conns[worker].Patient(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}

// content has a node send a file to the filebucket that no other node has, of the size of a catalog: there the server keeps content by its
// digest, as it keeps compiled catalogs and files of code.
func (b *bench) content(ctx context.Context, node, edition int) error {
	config, err := b.ca.Client(b.fleet.Certname(node))
	if err != nil {
		return err
	}
	conn, err := load.NewConn(b.tutti.URL(), config)
	if err != nil {
		return err
	}
	defer conn.Close()
	body := fmt.Appendf(b.fleet.PuppetDBCatalog(node), "\nedition %d\n", edition)
	sum := sha256.Sum256(body)
	request := load.Request{
		Method: http.MethodPut, Path: "/puppet/v3/file_bucket_file/sha256/" + hex.EncodeToString(sum[:]) + "//etc/site.json?environment=production",
		Header: http.Header{"Content-Type": {"application/octet-stream"}, "Accept": {"application/octet-stream"}}, Body: body,
	}
	response, err := conn.Patient(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}
