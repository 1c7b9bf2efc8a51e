package sim

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// run is an application that takes its time, and says what it does. Agents come and go meanwhile.
type run struct {
	Application
	pointer pxp.CatalogPointer
	parts   []part
	over    chan struct{} // closed when it is
}

// Ending is how an ordered Puppet run ends.
type Ending int

// The endings.
const (
	Changes Ending = iota // it changed something
	Settled               // there was nothing to change
	Breaks                // it failed
	Strays                // it applied another catalog than the node may have
	Hangs                 // it does not end by itself
)

// order is a run that somebody ordered: what says how it ended says its report's name, too.
type order struct {
	report string
	noop   bool
	ending Ending
}

// puppetRun is an ordered run of a node that gets catalogs: it applies what the node may have then. Its results are printed
// before, as if nothing could go wrong with it; Config.Fails and Ends say with whose it does.
func (n *node) puppetRun(transaction string, c orders.Command) effect {
	e, o := puppetRun(transaction), order{report: uuid.NewString()}
	var input struct{ Input pxp.PuppetParams }
	if err := json.Unmarshal(c.Input, &input); err == nil {
		o.noop = slices.Contains(input.Input.Flags, "--noop")
	}
	r := pxp.PuppetResults{
		Kind: "apply", Time: time.Now().UTC().Format(time.RFC3339Nano), TransactionUUID: o.report, Environment: "production", Version: 1,
		Status: "changed", Metrics: map[string]int{"total": 1, "changed": 1, "failed": 0, "skipped": 0, "out_of_sync": 1},
	}
	if ends := n.fleet.cfg.Ends; ends != nil {
		o.ending = ends(n.name)
	}
	if fails := n.fleet.cfg.Fails; fails != nil && fails(n.name) {
		o.ending = Breaks
	}
	switch o.ending {
	case Hangs:
		e.takes, e.stdout = 24*time.Hour, ""
		return e
	case Breaks:
		r.Status, r.ExitCode, r.ErrorType, r.Error = "failed", 1, pxp.AgentExitNonZero, "Puppet agent exited with a non 0 exitcode"
		e.stdout, e.exitCode = string(pxp.Data(r)), 1
		return e
	case Settled:
		r.Status, r.Metrics = "unchanged", map[string]int{"total": 1, "changed": 0, "failed": 0, "skipped": 0, "out_of_sync": 0}
	case Changes, Strays:
	}
	e.stdout, e.exitCode = string(pxp.Data(r)), 0
	n.runs.Go(func() { n.take(o) }) // whoever started the program holds the machine
	return e
}

// take puts an ordered run where agents find it, and tells the one that lives now.
func (n *node) take(o order) {
	n.shelf.mu.Lock()
	n.shelf.orders = append(n.shelf.orders, o)
	n.shelf.mu.Unlock()
	n.mu.Lock()
	a := n.agent
	n.mu.Unlock()
	if a != nil {
		a.look()
	}
}

// part is a resource of a catalog.
type part struct {
	Type  string
	Title string
	File  string
	Line  int
}

// maxParts bounds how many resources a run says something of, and between is the time from one to the next.
const (
	maxParts = 20
	between  = 100 * time.Millisecond
)

// partsOf lists the first resources of a catalog, if somebody will want to know them.
func (n *node) partsOf(catalog []byte) ([]part, error) {
	if !n.fleet.cfg.Events {
		return nil, nil
	}
	var c struct{ Resources []part }
	if err := json.Unmarshal(catalog, &c); err != nil {
		return nil, err
	}
	return c.Resources[:min(len(c.Resources), maxParts)], nil
}

// play writes what happens into the node's log, each thing when it happens, and leaves the report in the end. It stops
// when the node starts again.
func (n *node) play(r *run) {
	tick := time.NewTicker(between)
	defer tick.Stop()
	for i := range len(r.parts) + 2 {
		<-tick.C
		if !n.say(r, i) {
			return
		}
	}
}

// say says the i-th thing of a run, unless the run is gone.
func (n *node) say(r *run, i int) bool {
	s := &n.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != r {
		return false
	}
	e := r.event(i)
	ends := e.Kind == pxp.RunEnded
	r.Events = append(r.Events, e)
	n.fleet.cfg.Recorder.said(n.name, r.Report, e)
	n.log.Write(r.Report, ends, e)
	if ends {
		s.unsent = append(s.unsent, reportOf(n.name, r.pointer, r.Application))
		s.run = nil
		close(r.over)
	}
	return true
}

func (r *run) event(i int) pxp.RunEvent {
	e := pxp.RunEvent{N: i + 1, At: time.Now().UTC().Truncate(time.Microsecond), Environment: r.pointer.Environment}
	switch {
	case i == 0:
		e.Kind = pxp.RunBegan
	case i <= len(r.parts):
		p := r.parts[i-1]
		e.Kind, e.Status, e.Type, e.Title, e.File, e.Line = pxp.ResourceEvent, "success", p.Type, p.Title, p.File, p.Line
		e.Property, e.Name, e.Message = "ensure", "created", "created"
	default:
		e.Kind, e.Status, e.Version = pxp.RunEnded, "changed", r.pointer.Version
	}
	return e
}

// halt ends what goes on because the node starts again. The next agent begins anew.
func (n *node) halt() {
	s := &n.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return
	}
	n.fleet.cfg.Recorder.interrupted(n.name, s.run.Report)
	n.log.Write(s.run.Report, true)
	close(s.run.over)
	s.run, s.applied, s.now = nil, "", true
}

// newSender is what brings what runs say to the server, as long as an agent lives.
func (n *node) newSender(a *agent) *events.Sender {
	return events.New(events.Config{Log: n.log, Send: func(m wire.Message) error { return n.send(a, m) }, Slog: n.fleet.cfg.Log})
}

// poll asks for a catalog from time to time: hints get lost.
func (n *node) poll(ctx context.Context, a *agent) {
	tick := time.NewTicker(n.fleet.cfg.CatalogPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.told(ctx, a, false)
		}
	}
}

// reportOf is the report of a run that changed something small.
func reportOf(name string, p pxp.CatalogPointer, a Application) []byte {
	type value = []any
	now := a.At.Format(time.RFC3339Nano)
	status := "changed"
	if a.Settled {
		status = "unchanged"
	}
	text, _ := json.Marshal(map[string]any{ // of texts and numbers
		"host": name, "time": now, "configuration_version": p.Version, "transaction_uuid": a.Report, "report_format": 12, "puppet_version": "8.10.0",
		"status": status, "transaction_completed": true, "noop": a.Noop, "noop_pending": false, "environment": p.Environment,
		"logs": []any{
			map[string]any{"level": "notice", "message": "Applied catalog in 0.10 seconds", "source": "Puppet", "tags": []string{"notice"}, "time": now},
		},
		"metrics":               map[string]any{"time": map[string]any{"name": "time", "label": "Time", "values": []value{{"total", "Total", 0.1}}}},
		"resource_statuses":     statusesOf(a.Events),
		"corrective_change":     false,
		"catalog_uuid":          p.UUID,
		"code_id":               p.Version,
		"cached_catalog_status": "explicitly_requested",
	})
	return text
}

// statusesOf is what a report says of resources, of each of which one thing was said.
func statusesOf(events []pxp.RunEvent) map[string]any {
	statuses := map[string]any{}
	for _, e := range events {
		if e.Kind != pxp.ResourceEvent {
			continue
		}
		at := e.At.Format(time.RFC3339Nano)
		statuses[e.Type+"["+e.Title+"]"] = map[string]any{
			"title": e.Title, "resource_type": e.Type, "file": e.File, "line": e.Line, "time": at, "changed": true, "out_of_sync": true, "change_count": 1,
			"out_of_sync_count": 1, "skipped": false, "failed": false, "failed_to_restart": false, "containment_path": []string{}, "evaluation_time": 0.01,
			"events": []any{
				map[string]any{
					"property": e.Property, "name": e.Name, "message": e.Message, "status": e.Status, "time": at, "audited": false, "redacted": false,
					"corrective_change": false,
				},
			},
		}
	}
	return statuses
}
