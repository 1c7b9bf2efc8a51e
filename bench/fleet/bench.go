package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// The cases.
const (
	firstCase   = "first facts of all"
	roleCase    = "commit to one role"
	nothingCase = "commit to nothing read"
)

// How often the server is asked how far it is, when it is to be known to a tenth of a second and when it takes minutes, and
// how often whoever waits is told.
const (
	figuresEvery = 100 * time.Millisecond
	queueEvery   = 500 * time.Millisecond
	saidEvery    = 10 * time.Second
)

type bench struct {
	settings
	tutti   *rivals.Tutti
	code    environment
	data    string
	metrics *load.Conn
	api     *api.Client
	token   string
}

func (b *bench) open() (err error) {
	token, err := os.ReadFile(b.tutti.TokenPath())
	if err != nil {
		return err
	}
	b.token = strings.TrimSpace(string(token))
	if b.api, err = b.tutti.API(); err != nil {
		return err
	}
	b.metrics, err = load.NewConn(b.tutti.URL(), b.tutti.Trust())
	return err
}

// first deploys the code and sends every node's facts.
func (b *bench) first(ctx context.Context) (measure.Row, error) {
	return b.watch(ctx, firstCase, func(ctx context.Context) error {
		if err := b.tutti.Deploy(ctx, "production", b.code.dir, moduleDir); err != nil {
			return err
		}
		return b.send(ctx)
	})
}

// role changes the class of one role; no run had that edition before.
func (b *bench) role(ctx context.Context) (measure.Row, error) {
	return b.watch(ctx, roleCase, func(ctx context.Context) error {
		if err := b.code.writeRole(b.Roles/2, int(time.Now().Unix())); err != nil {
			return err
		}
		return b.tutti.Deploy(ctx, "production", b.code.dir, moduleDir)
	})
}

// nothing changes a file that no node read.
func (b *bench) nothing(ctx context.Context) (measure.Row, error) {
	return b.watch(ctx, nothingCase, func(ctx context.Context) error {
		if err := b.code.writeReadme(); err != nil {
			return err
		}
		return b.tutti.Deploy(ctx, "production", b.code.dir, moduleDir)
	})
}

// send submits the facts of all nodes, each over a connection of its own.
func (b *bench) send(ctx context.Context) error {
	ca, err := authority.Open(b.data)
	if err != nil {
		return err
	}
	fleet := fleetgen.Fleet{Seed: 1, Base: time.Now()}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(b.Senders)
	said := progress{begin: time.Now(), name: firstCase}
	for i := range b.Nodes {
		said.say("%d of %d nodes have sent their facts", i, b.Nodes)
		work.Go(func() error { return b.sendOne(ctx, ca, fleet, i) })
	}
	return work.Wait()
}

func (b *bench) sendOne(ctx context.Context, ca *authority.Authority, fleet fleetgen.Fleet, i int) error {
	node, facts, now := fleet.Certname(i), fleet.Facts(i, 0), time.Now()
	facts["role"] = roleName(i % b.Roles)
	body, err := json.Marshal(map[string]any{
		"name": node, "values": facts, "timestamp": now.Format(time.RFC3339Nano), "expiration": now.Add(30 * time.Minute).Format(time.RFC3339Nano),
	})
	if err != nil {
		return err
	}
	config, err := ca.Client(node)
	if err != nil {
		return err
	}
	conn, err := load.NewConn(b.tutti.URL(), config)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := load.Request{
		Method: http.MethodPut, Path: "/puppet/v3/facts/" + node + "?environment=production",
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}, Body: body,
	}
	response, err := conn.Patient(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}

// watch measures from the server's own time of the deploy until all nodes are current.
// Compilations are those that gave a catalog or an error; an error fails the benchmark.
func (b *bench) watch(ctx context.Context, name string, act func(context.Context) error) (measure.Row, error) {
	before, err := b.figures(ctx)
	if err != nil {
		return measure.Row{}, err
	}
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	m, err := b.follow(ctx, name, before, act)
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	now, err := b.figures(ctx)
	if err != nil {
		return measure.Row{}, err
	}
	figures := map[string]float64{
		"nodes": float64(b.Nodes), "touched": now.touched() - before.touched(), "compiled": now["tutti_compile_done_total"] - before["tutti_compile_done_total"],
		"current_s": m.current.Sub(m.begin).Seconds(), "server_cpu_s": span.Server.Seconds(), "cpu_ms_each": 1000 * span.Server.Seconds() / float64(b.Nodes),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
		"peak_rss_mb": float64(span.PeakRSS) / 1e6,
	}
	if !m.known.IsZero() {
		figures["known_s"] = m.known.Sub(m.begin).Seconds()
	}
	fmt.Fprintf(os.Stderr, "%s: %.0f touched, %.0f compiled, known after %.2f s, all current after %.1f s, %.1f s of the server's CPU\n",
		name, figures["touched"], figures["compiled"], figures["known_s"], figures["current_s"], figures["server_cpu_s"])
	return measure.Row{Server: "tutti", Case: name, Figures: figures}, nil
}

// moments are when what was waited for had come.
type moments struct{ begin, known, current time.Time }

// follow acts and waits: until it is known of each node whether it is touched (not of
// first facts, which come one by one), and until all are current.
func (b *bench) follow(ctx context.Context, name string, before figures, act func(context.Context) error) (m moments, err error) {
	work, acting := errgroup.WithContext(ctx)
	work.Go(func() error { return act(acting) })
	if name != firstCase {
		work.Go(func() (err error) {
			m.known, err = b.known(acting, before)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return m, err
	}
	m.begin, m.current, err = b.current(ctx, name)
	return m, err
}

// known waits until all nodes were considered.
func (b *bench) known(ctx context.Context, before figures) (time.Time, error) {
	for {
		now, err := b.figures(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if now.considered()-before.considered() >= float64(b.Nodes) {
			return time.Now(), nil
		}
		if err := measure.Settle(ctx, figuresEvery); err != nil {
			return time.Time{}, err
		}
	}
}

// current waits until nothing is to be compiled and all nodes' catalogs stand for the version, and says when that was deployed. How
// all nodes stand is asked only then: to compare them is work for the server.
func (b *bench) current(ctx context.Context, name string) (deployed, current time.Time, err error) {
	said := progress{begin: time.Now(), name: name}
	for {
		now, err := b.figures(ctx)
		if err != nil {
			return deployed, current, err
		}
		if now.waiting() > 0 {
			said.say("%.0f catalogs wait, %.0f were compiled since the server started", now.waiting(), now["tutti_compile_done_total"])
		} else {
			at := time.Now()
			status, err := b.status(ctx)
			switch {
			case err != nil:
				return deployed, current, err
			case status.Failed > 0:
				return deployed, current, fmt.Errorf("%d nodes do not compile: %+v", status.Failed, status.Errors)
			case status.Nodes == b.Nodes && status.Current == b.Nodes && status.Waiting == 0:
				return status.DeployedAt, at, nil
			}
		}
		if err := measure.Settle(ctx, queueEvery); err != nil {
			return deployed, current, err
		}
	}
}

func (b *bench) status(ctx context.Context) (api.CodeStatus, error) {
	return api.EnvironmentStatus.Call(ctx, b.api, api.EnvironmentRequest{Environment: "production"})
}

// progress tells whoever waits how far a case is, from time to time.
type progress struct {
	begin, last time.Time
	name        string
}

func (p *progress) say(format string, args ...any) {
	now := time.Now()
	if now.Sub(p.begin) < saidEvery || now.Sub(p.last) < saidEvery {
		return
	}
	p.last = now
	fmt.Fprintf(os.Stderr, "%s: %s, after %.0f s\n", p.name, fmt.Sprintf(format, args...), now.Sub(p.begin).Seconds())
}

// figures are the server's metrics that have no labels.
type figures map[string]float64

// touched is of how many nodes a new catalog was wanted because of what changed.
func (f figures) touched() float64 { return f["tutti_ahead_code_total"] + f["tutti_ahead_facts_total"] }

// waiting is how many catalogs wait or are compiled.
func (f figures) waiting() float64 { return f["tutti_compile_wanted"] + f["tutti_compile_leased"] }

// considered is of how many nodes it was known whether code touches them.
func (f figures) considered() float64 {
	return f["tutti_ahead_code_total"] + f["tutti_ahead_untouched_total"]
}

func (b *bench) figures(ctx context.Context) (figures, error) {
	request := load.Request{Path: "/metrics", Header: http.Header{"Authorization": {"Bearer " + b.token}}}
	response, err := b.metrics.Fetch(ctx, request)
	if err := load.Expect(request, response, err, http.StatusOK); err != nil {
		return nil, err
	}
	found := figures{}
	for line := range strings.Lines(string(response.Body)) {
		name, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		if value, err := strconv.ParseFloat(text, 64); ok && err == nil {
			found[name] = value
		}
	}
	return found, nil
}
