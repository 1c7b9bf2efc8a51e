package releasetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
)

// ErrStopped is what everything returns when the server was stopped.
var ErrStopped = errors.New("the server was stopped")

// Fate is what becomes of a node.
type Fate struct {
	Base, Fresh fleet.Digest
	Failure     string          // its share has no catalog
	Refuses     string          // it takes no releases
	Drifts      string          // what the catalog was compiled with changed
	Run         release.Outcome // of its runs; Succeeded unless it says otherwise
	Reports     string          // the catalog_uuid that its report names; empty: that of what it was given; "-": there is no report
	Noop        release.Outcome // of its rehearsal; Succeeded unless it says otherwise
}

// World is previews, deliveries and runs over nodes with fates. Its clock moves when a test moves it.
type World struct {
	mu       sync.Mutex
	Fates    map[fleet.Certname]Fate
	State    string // of its one preview, 1; empty: ready
	Verdicts func(q release.Question) release.Verdict
	Unjudged error                          // what the gate answers with
	Troubles func(o release.RunOrder) error // why a job cannot be ordered; nil: each can
	clock    time.Time
	has      map[fleet.Certname][]deliver.Generation
	jobs     []*worldJob
	previews []fleet.Certname // of which nodes the last new preview is
	calls    int
	stopAt   int  // at this call the server is stopped; 0: never
	after    bool // after it was done, not before
	stopped  bool
	Slow     int // looks that a run takes
	ran      map[fleet.Certname]int
	pinned   map[fleet.Certname]bool
}

type worldJob struct {
	order   release.RunOrder
	looks   map[fleet.Certname]int
	halted  bool
	results map[fleet.Certname]release.Result
	change  int64
	changed map[fleet.Certname]int64
}

// NewWorld returns a world in which each node has the base of its fate.
func NewWorld(fates map[fleet.Certname]Fate) *World {
	w := &World{Fates: fates, clock: start, has: map[fleet.Certname][]deliver.Generation{}, ran: map[fleet.Certname]int{}, pinned: map[fleet.Certname]bool{}}
	for node, f := range fates {
		if f.Base != "" {
			w.has[node] = []deliver.Generation{{Number: 1, Catalog: catalogOf(node, f.Base)}}
		}
	}
	return w
}

func catalogOf(node fleet.Certname, d fleet.Digest) deliver.Catalog {
	return deliver.Catalog{Digest: d, Environment: "production", Version: "v-" + d, UUID: fmt.Sprintf("%s of %s", d, node), CompiledAt: start}
}

// Now is the time of the world.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// Pass lets time pass.
func (w *World) Pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// StopAt stops the server at the n-th call from now, before or after it is done.
func (w *World) StopAt(n int, after bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopAt, w.after, w.stopped = w.calls+n, after, false
}

// Start starts the server again, and says whether it was stopped.
func (w *World) Start() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.stopped
	w.stopAt, w.stopped = 0, false
	return was
}

// call is one call of the server to the outside. w.mu is held.
func (w *World) call(do func() error) error {
	w.calls++
	if w.stopped || w.stopAt == w.calls && !w.after {
		w.stopped = true
		return ErrStopped
	}
	err := do()
	if w.stopAt == w.calls {
		w.stopped = true
		return ErrStopped
	}
	return err
}

func (w *World) do(do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.call(do)
}

// Service is a service over a store in this world, as it is after a start of the server.
func (w *World) Service(store release.Store) *release.Service {
	return release.NewService(w.Config(store))
}

// Config is what a service in this world works with.
func (w *World) Config(store release.Store) release.Config {
	return release.Config{
		Store: stoppable{store, w}, Previews: w, Delivery: w, Runs: w, Resolver: w, Gate: w, Now: w.Now, Poll: time.Hour,
		HasRole: func(_ context.Context, actor fleet.Actor, role string) (bool, error) {
			return role == "all" || role == "of "+actor.Name, nil
		},
	}
}

// stoppable is a store whose writes the server may be stopped at.
type stoppable struct {
	release.Store
	w *World
}

// SaveRelease implements release.Store.
func (s stoppable) SaveRelease(ctx context.Context, c release.Change) (r release.Release, err error) {
	err = s.w.do(func() (err error) {
		r, err = s.Store.SaveRelease(ctx, c)
		return err
	})
	return r, err
}

// CreateRelease implements release.Store.
func (s stoppable) CreateRelease(ctx context.Context, r release.Release, targets []release.Target, entries []release.Entry) (made release.Release, err error) {
	err = s.w.do(func() (err error) {
		made, err = s.Store.CreateRelease(ctx, r, targets, entries)
		return err
	})
	return made, err
}

// Judge implements release.Gate.
func (w *World) Judge(_ context.Context, q release.Question) (v release.Verdict, err error) {
	if w.Verdicts != nil {
		v = w.Verdicts(q)
	}
	return v, w.Unjudged
}

// Preview implements release.Previews.
func (w *World) Preview(_ context.Context, id int64) (release.Preview, error) {
	if id != 1 {
		return release.Preview{}, fault.New(fault.NotFound, "there is no preview %d", id)
	}
	state := w.State
	if state == "" {
		state = "ready"
	}
	return release.Preview{ID: 1, Environment: "production", Version: "v", State: state, Ready: state == "ready"}, nil
}

// Shares implements release.Previews.
func (w *World) Shares(_ context.Context, _ int64, behind, n int) (shares []release.Share, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, node := range slices.Sorted(maps.Keys(w.Fates)) {
		if f := w.Fates[node]; i >= behind && len(shares) < n {
			shares = append(shares, release.Share{
				Place: i + 1, Node: node, Same: f.Failure == "" && f.Base == f.Fresh, Base: f.Base, Fresh: f.Fresh, Failure: f.Failure,
			})
		}
	}
	return shares, nil
}

// Catalog implements release.Previews.
func (w *World) Catalog(_ context.Context, _ release.Preview, s release.Share) (deliver.Catalog, error) {
	return catalogOf(s.Node, s.Fresh), nil
}

// Stands implements release.Previews.
func (w *World) Stands(_ context.Context, node fleet.Certname, _ deliver.Catalog) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Fates[node].Drifts, nil
}

// Again implements release.Previews.
func (w *World) Again(_ context.Context, _ fleet.Actor, _ release.Preview, nodes []fleet.Certname) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.previews = nodes
	return 2, nil
}

// Again1 is the nodes of the preview that was made anew.
func (w *World) Again1() []fleet.Certname {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.previews
}

// Has implements release.Delivery.
func (w *World) Has(_ context.Context, node fleet.Certname) (release.Holding, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := release.Holding{Refuses: w.Fates[node].Refuses}
	if kept := w.has[node]; len(kept) > 0 {
		head := kept[0]
		h.Catalog, h.Version, h.Generation, h.Release = head.Digest, head.Version, head.Number, head.Release
	}
	return h, nil
}

// Give implements release.Delivery.
func (w *World) Give(_ context.Context, node fleet.Certname, g deliver.Order) (number int64, err error) {
	err = w.do(func() error {
		kept := w.has[node]
		if w.pinned[node] {
			return fault.New(fault.Conflict, "pinned")
		}
		if len(kept) > 0 && kept[0].Digest == g.Catalog.Digest {
			number = kept[0].Number
			return nil
		}
		number = int64(len(kept)) + 1
		w.has[node] = append([]deliver.Generation{{Number: number, Release: g.Release, Catalog: g.Catalog}}, kept...)
		return nil
	})
	return number, err
}

// Release gives a node a catalog, as somebody else would.
func (w *World) Release(node fleet.Certname, d fleet.Digest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has[node] = append([]deliver.Generation{{Number: int64(len(w.has[node])) + 1, Catalog: catalogOf(node, d)}}, w.has[node]...)
}

// Forget keeps nothing of a node but what it has.
func (w *World) Forget(node fleet.Certname) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has[node] = w.has[node][:1]
}

// Pin has a node take nothing more.
func (w *World) Pin(node fleet.Certname) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pinned[node] = true
}

// Generations implements release.Delivery.
func (w *World) Generations(_ context.Context, node fleet.Certname) ([]deliver.Generation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.has[node]), nil
}

// GivenBy implements release.Delivery.
func (w *World) GivenBy(_ context.Context, id int64) (nodes []fleet.Certname, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(w.has)) {
		if slices.ContainsFunc(w.has[node], func(g deliver.Generation) bool { return g.Release == id }) {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// ReportedCatalog implements release.Delivery.
func (w *World) ReportedCatalog(_ context.Context, node fleet.Certname, _ string) (string, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch said := w.Fates[node].Reports; said {
	case "-":
		return "", false, nil
	case "":
		return w.has[node][0].UUID, true, nil
	default:
		return said, true, nil
	}
}

// Order implements release.Runs.
func (w *World) Order(_ context.Context, o release.RunOrder) (id int64, err error) {
	err = w.do(func() error {
		for i, j := range w.jobs {
			if j.order.Key == o.Key {
				id = int64(i) + 1
				return nil
			}
		}
		if w.Troubles != nil {
			if err := w.Troubles(o); err != nil {
				return err
			}
		}
		w.jobs = append(w.jobs, &worldJob{
			order: o, looks: map[fleet.Certname]int{}, results: map[fleet.Certname]release.Result{}, changed: map[fleet.Certname]int64{},
		})
		id = int64(len(w.jobs))
		return nil
	})
	return id, err
}

// Find implements release.Runs.
func (w *World) Find(_ context.Context, key string) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, j := range w.jobs {
		if j.order.Key == key {
			return int64(i) + 1, nil
		}
	}
	return 0, fault.New(fault.NotFound, "no job %s", key)
}

// Stop implements release.Runs.
func (w *World) Stop(_ context.Context, id int64, _ bool) error {
	return w.do(func() error {
		w.jobs[id-1].halted = true
		return nil
	})
}

// Results implements release.Runs. Each look brings the runs on.
func (w *World) Results(_ context.Context, id, after int64, _ int) (found release.Results, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[id-1]
	w.bringOn(j)
	found.Last, found.Over = after, true
	for _, node := range j.order.Nodes {
		r := j.results[node]
		if r.Stands == release.Pending || r.Stands == release.Begun {
			found.Over = false
		}
		if j.changed[node] > after {
			found.Runs = append(found.Runs, r)
			found.Last = max(found.Last, j.changed[node])
		}
	}
	return found, nil
}

// bringOn lets each run of a job go on: the next ones begin while the budget lasts and there is room.
func (w *World) bringOn(j *worldJob) {
	failed, running := 0, 0
	set := func(node fleet.Certname, r release.Result) {
		j.change++
		r.Node, r.At, r.Transaction = node, w.clock, "tx "+string(node)
		j.results[node], j.changed[node] = r, j.change
	}
	for _, node := range j.order.Nodes {
		switch j.results[node].Stands {
		case release.RunFailed, release.RunTimedOut:
			failed++
		case release.Begun:
			running++
		case release.Pending, release.Succeeded, release.RunOffline, release.RunSkipped:
		}
	}
	for _, node := range j.order.Nodes {
		over := j.halted || j.order.MaxFailures != nil && failed > *j.order.MaxFailures
		switch j.results[node].Stands {
		case release.Pending:
			fate := w.outcome(j, node)
			switch {
			case over:
				set(node, release.Result{Stands: release.RunSkipped, Reason: "the job ended before its turn"})
			case fate == release.RunOffline:
				set(node, release.Result{Stands: fate, Reason: "it was not connected"})
			case j.order.Concurrency == 0 || running < j.order.Concurrency:
				running++
				set(node, release.Result{Stands: release.Begun})
				if !j.order.Noop {
					w.ran[node]++
				}
			}
		case release.Begun:
			if j.looks[node]++; j.looks[node] <= w.Slow {
				continue
			}
			fate := w.outcome(j, node)
			running--
			if fate == release.RunFailed || fate == release.RunTimedOut {
				failed++
			}
			set(node, release.Result{Stands: fate, Changed: true})
		case release.Succeeded, release.RunFailed, release.RunTimedOut, release.RunOffline, release.RunSkipped:
		}
	}
}

func (w *World) outcome(j *worldJob, node fleet.Certname) release.Outcome {
	o := w.Fates[node].Run
	if j.order.Noop {
		o = w.Fates[node].Noop
	}
	if o == release.Pending || o == release.Begun {
		return release.Succeeded
	}
	return o
}

// Jobs is what was ordered.
func (w *World) Jobs() (orders []release.RunOrder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.jobs {
		orders = append(orders, j.order)
	}
	return orders
}

// Ran is how often Puppet was run on a node, rehearsals aside.
func (w *World) Ran(node fleet.Certname) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran[node]
}

// Resolve implements release.Resolver: only nodes are named.
func (w *World) Resolve(_ context.Context, t api.JobTargets) (nodes []fleet.Certname, err error) {
	for _, name := range slices.Sorted(slices.Values(t.Nodes)) {
		nodes = append(nodes, fleet.Certname(name))
	}
	return nodes, nil
}

// Members implements release.Resolver: the members of a group are the nodes whose names begin with its name.
func (w *World) Members(_ context.Context, group string) (nodes []fleet.Certname, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(w.Fates)) {
		if len(node) >= len(group) && string(node[:len(group)]) == group {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}
