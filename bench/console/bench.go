package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
)

// bench is a server, what it knows of a fleet, and its agents.
type bench struct {
	settings
	tutti *rivals.Tutti
	dir   string
	nodes int
	names []string
	made  fleetgen.Fleet
	ca    *authority.Authority
	api   *api.Client
	token string
	fleet *simfleet.Fleet // nil: no agent is connected
	alone time.Duration   // the processor time of a job that nobody watched: what watchers cost is what is more than that
}

func (s settings) open(tutti *rivals.Tutti, dir string, nodes int) (*bench, error) {
	b := &bench{settings: s, tutti: tutti, dir: dir, nodes: nodes, made: fleetgen.Fleet{Seed: 1, Base: time.Now().Add(-time.Hour)}}
	for i := range nodes {
		b.names = append(b.names, b.made.Certname(i))
	}
	token, err := os.ReadFile(tutti.TokenPath())
	if err != nil {
		return nil, err
	}
	b.token = strings.TrimSpace(string(token))
	if b.ca, err = authority.Open(filepath.Join(dir, "server", "data")); err != nil {
		return nil, err
	}
	b.api, err = tutti.API()
	return b, err
}

func (b *bench) close() error {
	if b.fleet == nil {
		return nil
	}
	return b.fleet.Close()
}

// fleetCases is what is measured of the fleet with agents, in order.
func (b *bench) fleetCases() []func(context.Context) (measure.Row, error) {
	works := []func(context.Context) (measure.Row, error){b.reports}
	if b.wants("list") {
		works = append(works, b.list)
		if b.board != "" {
			works = append(works, b.puppetboard)
		}
	}
	if b.wants("preview") {
		works = append(works, b.released, b.preview)
	}
	if b.wants("job") {
		works = append(works, b.agents, b.job, b.unwatched, b.watched)
	}
	return works
}

// reports stores facts and a report of each node, by the commands of PuppetDB's API.
func (b *bench) reports(ctx context.Context) (measure.Row, error) {
	return b.timed(ctx, fmt.Sprintf("facts and reports of %d nodes", b.nodes), func() error {
		const workers = 4
		conns := make([]*load.Conn, workers)
		for i := range conns {
			conn, err := load.NewConn(b.tutti.LocalhostURL(), b.tutti.Trust())
			if err != nil {
				return err
			}
			defer conn.Close()
			conns[i] = conn
		}
		header := http.Header{"Authorization": {"Bearer " + b.token}, "Content-Type": {"application/json"}}
		_, err := load.Run(ctx, load.Plan{Workers: workers, Total: b.nodes}, func(ctx context.Context, worker, node int) error {
			for command, body := range map[string][]byte{
				"replace_facts&version=5": b.made.PuppetDBFacts(node, 0), "store_report&version=8": b.made.PuppetDBReport(node, 0),
			} {
				request := load.Request{
					Method: http.MethodPost, Path: "/pdb/cmd/v1?command=" + command + "&certname=" + b.made.Certname(node), Header: header, Body: body,
				}
				response, err := conns[worker].Patient(ctx, request)
				if err := load.Expect(request, response, err, http.StatusOK); err != nil {
					return err
				}
			}
			if node%5000 == 4999 {
				fmt.Fprintf(os.Stderr, "%d of %d nodes are known\n", node+1, b.nodes)
			}
			return nil
		})
		return err
	})
}

// timed does something that is not what is measured, and says how long it took.
func (b *bench) timed(ctx context.Context, name string, work func() error) (measure.Row, error) {
	start := time.Now()
	figures, _, err := measure.Watched(ctx, name, b.tutti.Usage, func() (map[string]float64, error) { return map[string]float64{}, work() })
	if err != nil {
		return measure.Row{}, err
	}
	figures["nodes"], figures["done_s"] = float64(b.nodes), time.Since(start).Seconds()
	fmt.Fprintf(os.Stderr, "%s: %.0f s\n", name, figures["done_s"])
	return measure.Ours(name, figures), nil
}

// agents connects an agent for each node.
func (b *bench) agents(ctx context.Context) (measure.Row, error) {
	return b.timed(ctx, "agents connect", func() error {
		b.fleet = simfleet.New([]*rivals.Tutti{b.tutti}, b.ca, sim.Config{Names: b.names})
		if err := b.fleet.Enrol(ctx); err != nil {
			return err
		}
		return b.fleet.Connect(ctx)
	})
}

// The code that is released, and the code that is previewed: every node has one file, with another text.
const (
	siteBefore = "file { '/etc/fleet': content => \"${facts['networking']['hostname']} 1\\n\" }\n"
	siteAfter  = "file { '/etc/fleet': content => \"${facts['networking']['hostname']} 2\\n\" }\n"
)

func (b *bench) code(name, manifest string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "manifests"), 0o755); err != nil { //nolint:gosec // the server reads it
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "manifests", "site.pp"), []byte(manifest), 0o644) //nolint:gosec // as above
}

// released gives every node a catalog, and makes the preview that changes all of them.
func (b *bench) released(ctx context.Context) (measure.Row, error) {
	return b.timed(ctx, "catalogs for the preview", func() error {
		before, err := b.code("before", siteBefore)
		if err != nil {
			return err
		}
		after, err := b.code("after", siteAfter)
		if err != nil {
			return err
		}
		if err := b.tutti.Deploy(ctx, "production", before, filepath.Join(b.dir, "none")); err != nil {
			return err
		}
		if err := b.sendFacts(ctx); err != nil {
			return err
		}
		for {
			status, err := api.EnvironmentStatus.Call(ctx, b.api, api.EnvironmentRequest{Environment: "production"})
			if err != nil {
				return err
			}
			if status.Current == b.nodes {
				break
			}
			fmt.Fprintf(os.Stderr, "%d of %d nodes have a catalog\n", status.Current, b.nodes)
			if err := measure.Settle(ctx, 5*time.Second); err != nil {
				return err
			}
		}
		out, err := b.tutti.Run(ctx, "preview", "create", "production", "--ref", after, "--base-module-path", filepath.Join(b.dir, "none"), "-o", "json")
		if err != nil {
			return err
		}
		var made api.Preview
		if err := json.Unmarshal(out, &made); err != nil {
			return err
		}
		if made.Counts["changed"] != b.nodes {
			return fmt.Errorf("all %d nodes are to change: %v", b.nodes, made.Counts)
		}
		return nil
	})
}

// sendFacts sends each node's facts as its puppet agent does: those are compiled for.
func (b *bench) sendFacts(ctx context.Context) error {
	_, err := load.Run(ctx, load.Plan{Workers: 4, Total: b.nodes}, func(ctx context.Context, _, i int) error {
		config, err := b.ca.Client(b.names[i])
		if err != nil {
			return err
		}
		return b.sendOne(ctx, config, i)
	})
	return err
}

func (b *bench) sendOne(ctx context.Context, config *tls.Config, i int) error {
	now := time.Now()
	body, err := json.Marshal(map[string]any{
		"name": b.names[i], "values": b.made.Facts(i, 0), "timestamp": now.Format(time.RFC3339Nano), "expiration": now.Add(30 * time.Minute).Format(time.RFC3339Nano),
	})
	if err != nil {
		return err
	}
	conn, err := load.NewConn(b.tutti.URL(), config)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := load.Request{
		Method: http.MethodPut, Path: "/puppet/v3/facts/" + b.names[i] + "?environment=production",
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}, Body: body,
	}
	response, err := conn.Patient(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}
