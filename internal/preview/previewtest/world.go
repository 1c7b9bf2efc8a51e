package previewtest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// Fate is what becomes of a node's compilation.
type Fate struct {
	Asks     int  // how often it is pending before it ends
	Gone     bool // it is lost once
	Stands   preview.Standing
	Fresh    fleet.Digest
	Volatile string
	Failure  preview.Failure
	Base     fleet.Digest // what the node has
	Order    bool         // both differ in order only

	BaseVersion fleet.Digest // that Base was compiled of
}

// World is all ports but the store. Set Fail to have one in so many calls fail.
type World struct {
	Fates map[fleet.Certname]Fate
	Fail  int

	mu     sync.Mutex
	calls  int
	asked  map[fleet.Certname]int
	lost   map[fleet.Certname]bool
	number map[int64]fleet.Certname
	Wanted int // questions that made something wanted
}

var (
	_ preview.Compiler = (*World)(nil)
	_ preview.Bases    = (*World)(nil)
	_ preview.Resolver = (*World)(nil)
)

func (w *World) call() error {
	w.calls++
	if w.Fail > 0 && w.calls*2654435761>>7%w.Fail == 0 { // spread, or the same call would always fail
		return fault.New(fault.Unavailable, "this call fails")
	}
	return nil
}

// Resolve implements preview.Resolver: targets are ignored.
func (w *World) Resolve(context.Context, fleet.Environment, api.JobTargets) ([]fleet.Certname, error) {
	return slices.Sorted(maps.Keys(w.Fates)), nil
}

// Ask implements preview.Compiler.
func (w *World) Ask(_ context.Context, _ preview.Preview, nodes []fleet.Certname, tell func([]preview.Answer) error) error {
	nodes = slices.Clone(nodes)
	slices.Reverse(nodes)
	for part := range slices.Chunk(nodes, 3) {
		answers, err := w.ask(part)
		if err != nil {
			return err
		}
		if err := tell(answers); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) ask(nodes []fleet.Certname) ([]preview.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call(); err != nil {
		return nil, err
	}
	if w.number == nil {
		w.number, w.asked, w.lost = map[int64]fleet.Certname{}, map[fleet.Certname]int{}, map[fleet.Certname]bool{}
	}
	answers := make([]preview.Answer, len(nodes))
	for i, node := range nodes {
		w.Wanted++
		id := int64(len(w.number) + 1)
		w.number[id] = node
		answers[i] = w.answer(id, node)
	}
	return answers, nil
}

// Ended implements preview.Compiler.
func (w *World) Ended(_ context.Context, compilations []int64) (ended []preview.Answer, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call(); err != nil {
		return nil, err
	}
	for _, id := range compilations {
		if a := w.answer(id, w.number[id]); a.Stands != preview.Pending {
			ended = append(ended, a)
		}
	}
	return ended, nil
}

func (w *World) answer(id int64, node fleet.Certname) preview.Answer {
	f := w.Fates[node]
	a := preview.Answer{Node: node, Compilation: id, Stands: preview.Pending}
	if w.asked[node]++; w.asked[node] <= f.Asks {
		return a
	}
	if f.Gone && !w.lost[node] {
		w.lost[node] = true
		a.Stands = preview.Gone
		return a
	}
	a.Stands, a.Catalog, a.Volatile, a.Failure = f.Stands, f.Fresh, f.Volatile, f.Failure
	return a
}

// Bases implements preview.Bases.
func (w *World) Bases(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]preview.Base, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bases := map[fleet.Certname]preview.Base{}
	for _, node := range nodes {
		if base := w.Fates[node].Base; base != "" {
			bases[node] = preview.Base{Catalog: base, Environment: "production", Version: w.Fates[node].BaseVersion}
		}
	}
	return bases, w.call()
}

// Comparing is preview.Comparing for catalogs that are nothing but their digests.
func (w *World) Comparing() (preview.Comparing, error) {
	return &comparing{world: w, groups: map[string]map[uint32]bool{}}, nil
}

type comparing struct {
	world  *World
	mu     sync.Mutex
	groups map[string]map[uint32]bool
}

func (c *comparing) put(key string, number uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[key] == nil {
		c.groups[key] = map[uint32]bool{}
	}
	if c.groups[key][number] {
		panic(fmt.Sprintf("node %d is taken in twice", number))
	}
	c.groups[key][number] = true
}

// Add implements preview.Comparing.
func (c *comparing) Add(_ context.Context, number uint32, node fleet.Certname, pair preview.Pair) (preview.Verdict, error) {
	c.world.mu.Lock()
	err := c.world.call()
	order := c.world.Fates[node].Order
	c.world.mu.Unlock()
	if err != nil {
		return preview.NoDifference, err
	}
	if order {
		return preview.OrderOnly, nil
	}
	key := string(pair.Base) + " -> " + string(pair.Fresh)
	if pair.AcrossEngines {
		key += " by another engine"
	}
	c.put(key, number)
	return preview.Different, nil
}

// AddSame implements preview.Comparing.
func (c *comparing) AddSame(uint32, fleet.Certname) {}

// AddFailure implements preview.Comparing.
func (c *comparing) AddFailure(number uint32, _ fleet.Certname, why preview.Failure) {
	c.put("error "+why.Message, number)
}

// Fleet implements preview.Comparing.
func (c *comparing) Fleet(limit int, nameOf func(uint32) string) (so api.FleetDifference, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, nodes := range c.groups {
		first := slices.Min(slices.Collect(maps.Keys(nodes)))
		change := "changed"
		if strings.HasPrefix(key, "error ") {
			change = "error"
		}
		so.Groups = append(so.Groups, api.ChangeGroup{Key: key, Change: change, Nodes: len(nodes), Examples: []string{nameOf(first)}})
	}
	slices.SortFunc(so.Groups, func(a, b api.ChangeGroup) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Key, b.Key))
	})
	so.Groups = so.Groups[:min(limit, len(so.Groups))]
	return so, nil
}

// Members implements preview.Comparing.
func (c *comparing) Members(key string) []uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.groups[key]))
}

// Groups implements preview.Comparing.
func (c *comparing) Groups(nameOf func(uint32) string) iter.Seq2[preview.Group, error] {
	return func(yield func(preview.Group, error) bool) {
		so, err := c.Fleet(math.MaxInt, nameOf)
		if err != nil {
			yield(preview.Group{}, err)
			return
		}
		for _, change := range so.Groups {
			if !yield(preview.Group{Change: change, Nodes: c.Members(change.Key)}, nil) {
				return
			}
		}
	}
}
