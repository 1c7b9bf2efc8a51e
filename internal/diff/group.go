package diff

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
)

// GrouperConfig sets a Grouper up.
type GrouperConfig struct {
	// Secret keys the groups' names: with the same secret the same change has the
	// same name tomorrow. At least 32 bytes; nil: a random one.
	Secret []byte
	// MaxGroups is how many groups there may be; what finds no room is counted.
	// Default 100 000.
	MaxGroups int
	// ExampleBytes is how much the examples may take together; the smallest groups
	// lose theirs. Default 64 MiB.
	ExampleBytes int
	// Shower makes the examples; nil: without contents of files, short.
	Shower *Shower
}

// exampleLimits are for one change among many.
var exampleLimits = Limits{Resources: 1, Places: 40, Edges: 1, ValueBytes: 300, TextBytes: 256 << 10, DiffLines: 60, ContextLines: 3}

// Grouper finds out which nodes have the same change. It holds, for each change,
// its key, its title, the numbers of its nodes, and how the first of them has it.
type Grouper struct {
	GrouperConfig

	mu       sync.Mutex // guards the rest
	groups   map[Key]*group
	examples int // bytes
	changed  nodeSet
	failed   nodeSet
	order    nodeSet
	nodes    nodeSet
	lost     int
}

// group is one change. Its example is JSON, as it takes less room.
type group struct {
	head
	key     Key
	nodes   nodeSet
	first   uint32
	example []byte
}

// head is what a group is called.
type head struct {
	change, typ, title string
	exported, order    bool
	parameters         []string
	engine             []string // the forms in which values differ, if nothing else does and it is the engine's doing
	message, file      string
	line               int
}

// NewGrouper returns an empty one; Invalid for a secret that is too short.
func NewGrouper(c GrouperConfig) (*Grouper, error) {
	if c.Secret == nil {
		c.Secret = []byte(rand.Text() + rand.Text())
	}
	if len(c.Secret) < 32 {
		return nil, fault.New(fault.Invalid, "the secret that keys groups has %d bytes, at least 32 are needed", len(c.Secret))
	}
	if c.MaxGroups <= 0 {
		c.MaxGroups = 100_000
	}
	if c.ExampleBytes <= 0 {
		c.ExampleBytes = 64 << 20
	}
	if c.Shower == nil {
		c.Shower = NewShower(nil, exampleLimits)
	}
	return &Grouper{GrouperConfig: c, groups: map[Key]*group{}}, nil
}

// Node is one node of those that are grouped. Numbers are small: the place in a list.
type Node struct {
	Number uint32
	Name   string
}

// CompileError is why a node has no catalog.
type CompileError struct {
	Message string
	File    string
	Line    int
}

// finding is one change of one node on its way into its group.
type finding struct {
	key      Key
	head     head
	resource *resourceChange // of which an example can be made
}

// Add takes in how one node differs. A node is added once; the order of nodes makes
// no difference.
func (g *Grouper) Add(ctx context.Context, n Node, d *Difference) (changes bool) {
	found := g.findings(n, d)
	changes = slices.ContainsFunc(found, func(f finding) bool { return !f.head.order })
	g.mu.Lock()
	g.nodes.add(n.Number)
	switch {
	case changes:
		g.changed.add(n.Number)
	case len(found) > 0:
		g.order.add(n.Number)
	}
	wanted := found[:0]
	for _, f := range found {
		if g.enter(n, f) && f.resource != nil {
			wanted = append(wanted, f)
		}
	}
	g.mu.Unlock()
	for _, f := range wanted {
		g.illustrate(ctx, n, d, f)
	}
	return changes
}

// AddSame takes in a node whose catalogs are known to be the same.
func (g *Grouper) AddSame(n Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes.add(n.Number)
}

// AddError takes in a node whose catalog did not compile.
func (g *Grouper) AddError(n Node, e CompileError) {
	k := newKeying(g.Secret, namesOf(n.Name))
	k.words("error", e.File, strconv.Itoa(e.Line))
	k.text(e.Message)
	h := head{change: "error", message: cutText(k.names.pattern(e.Message), 2000), file: e.File, line: e.Line}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes.add(n.Number)
	g.failed.add(n.Number)
	g.enter(n, finding{key: k.sum(), head: h})
}

// AddLoss takes in that a node's catalog lost much. name is the finding's, lost-all or lost-most, which words say. The node is added otherwise, too.
func (g *Grouper) AddLoss(n Node, name, words string) {
	k := newKeying(g.Secret, namesOf(n.Name))
	k.words("lost", name)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enter(n, finding{key: k.sum(), head: head{change: name, title: words}})
}

// findings lists the changes of a node.
func (g *Grouper) findings(n Node, d *Difference) []finding {
	own := namesOf(n.Name)
	var all []finding
	add := func(h head, r *resourceChange, write func(keying)) {
		k := newKeying(g.Secret, own)
		write(k)
		h.title = cutText(own.pattern(h.title), 500)
		all = append(all, finding{k.sum(), h, r})
	}
	if d.environment[0] != d.environment[1] {
		add(head{change: "node", title: "environment", message: d.environment[0] + " → " + d.environment[1]}, nil,
			func(k keying) { k.words("environment", d.environment[0], d.environment[1]) })
	}
	for i := range d.resources {
		r := &d.resources[i]
		h := headOf(r)
		if d.engines {
			h.engine = r.forms()
		}
		add(h, r, func(k keying) {
			k.resource(r)
			if len(h.engine) > 0 { // the same change of a node whose catalog this engine compiled is the code's, and another group
				k.words("engine")
			}
		})
	}
	for _, class := range d.looseClasses() {
		add(head{change: "node", title: "class " + class}, nil, func(k keying) { k.words("class", class) })
	}
	for _, e := range d.edges {
		if !e.implied {
			add(head{change: "edge", title: e.source + " → " + e.target, message: string(e.kind), order: true}, nil,
				func(k keying) { k.words("edge", string(e.kind)); k.text(e.source); k.text(e.target) })
		}
	}
	if d.moved > 0 {
		add(head{change: "node", title: "order of resources", order: true}, nil, func(k keying) { k.words("moved") })
	}
	if !d.tags.empty() {
		add(head{change: "node", title: "tags", order: true}, nil, func(k keying) { k.tags(d.tags) })
	}
	return all
}

// looseClasses are classes that came or went without their resource: "+name", "-name".
func (d *Difference) looseClasses() []string {
	if d.classes.empty() {
		return nil
	}
	known := map[string]bool{}
	for _, r := range d.resources {
		if r.typ == "Class" || r.typ == "Node" {
			known[strings.ToLower(r.title)] = true
		}
	}
	var loose []string
	for sign, list := range map[string][]string{"+": d.classes.added, "-": d.classes.removed} {
		for _, class := range list {
			if !known[strings.ToLower(class)] {
				loose = append(loose, sign+class)
			}
		}
	}
	slices.Sort(loose)
	return loose
}

// headOf names a change of a resource.
func headOf(r *resourceChange) head {
	h := head{change: string(r.kind), typ: r.typ, title: r.title, exported: r.exported, order: r.isOrder()}
	if r.kind != changed {
		return h
	}
	for i := range r.parameters {
		if p := &r.parameters[i]; h.order || !p.isOrder() {
			h.parameters = append(h.parameters, p.name)
		}
	}
	for i := range r.files {
		h.parameters = append(h.parameters, attributeOf(&r.files[i]))
	}
	if h.order && !r.tags.empty() {
		h.parameters = append(h.parameters, "tags")
	}
	h.parameters = setOf(h.parameters)
	return h
}

// attributeOf is what of a file differs: what it holds, or what else its source says.
func attributeOf(f *fileChange) string {
	if f.old.Checksum != f.new.Checksum {
		return "content"
	}
	return "source"
}

// enter puts a node into its group and says whether an example of it is wanted. The
// caller holds mu.
func (g *Grouper) enter(n Node, f finding) bool {
	of := g.groups[f.key]
	if of == nil {
		if len(g.groups) >= g.MaxGroups {
			g.lost++
			return false
		}
		of = &group{head: f.head, key: f.key, first: n.Number}
		g.groups[f.key] = of
	}
	if !of.nodes.add(n.Number) || n.Number > of.first {
		return false // of two changes that become one under the node's name, the first one is the example
	}
	of.first, of.file, of.line = n.Number, f.head.file, f.head.line
	return true
}

// illustrate gives a group the example of its first node.
func (g *Grouper) illustrate(ctx context.Context, n Node, d *Difference, f finding) {
	text, err := json.Marshal(g.Shower.resource(ctx, d, f.resource))
	if err != nil {
		return // all of it can be written as JSON
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.groups[f.key]
	if of == nil || of.first != n.Number {
		return
	}
	g.examples += len(text) - len(of.example)
	of.example = text
	if g.examples > g.ExampleBytes {
		g.thin()
	}
}

// thin takes the examples of the smallest groups until half of the room is free.
func (g *Grouper) thin() {
	var held []*group
	for _, of := range g.groups {
		if of.example != nil {
			held = append(held, of)
		}
	}
	slices.SortFunc(held, func(a, b *group) int { return larger(b, a) })
	for _, of := range held {
		if g.examples <= g.ExampleBytes/2 {
			return
		}
		g.examples -= len(of.example)
		of.example = nil
	}
}
