package compiletest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var (
	_ compile.Documents    = (*Documents)(nil)
	_ compile.Inputs       = (*Facts)(nil)
	_ compile.Results      = (*Results)(nil)
	_ compile.Gate         = (*Gate)(nil)
	_ compile.Versions     = (*Versions)(nil)
	_ compile.Environments = (*Versions)(nil)
)

// Documents keeps documents in memory.
type Documents struct {
	mu   sync.Mutex
	docs map[fleet.Digest][]byte
	fail error
}

// NewDocuments returns an empty store.
func NewDocuments() *Documents { return &Documents{docs: map[fleet.Digest][]byte{}} }

// Fail makes every method return err until it is called with nil.
func (d *Documents) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// Forget removes a document.
func (d *Documents) Forget(digest fleet.Digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.docs, digest)
}

// SaveDocument implements compile.Documents.
func (d *Documents) SaveDocument(_ context.Context, document []byte) (fleet.Digest, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return "", d.fail
	}
	digest := fleet.DigestOf(document)
	d.docs[digest] = bytes.Clone(document)
	return digest, nil
}

// Document implements compile.Documents.
func (d *Documents) Document(_ context.Context, digest fleet.Digest) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return nil, d.fail
	}
	if doc, ok := d.docs[digest]; ok {
		return doc, nil
	}
	return nil, fault.New(fault.NotFound, "there is no document %s", digest.Short())
}

// Facts knows nodes' facts and keeps a Queue's sequences in step.
type Facts struct {
	Queue *Queue // nil: none
	mu    sync.Mutex
	facts map[fleet.Certname]json.RawMessage
	seqs  map[fleet.Certname]int64
}

// Set stores facts (one JSON object) and returns their sequence.
func (f *Facts) Set(node fleet.Certname, facts string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.facts == nil {
		f.facts, f.seqs = map[fleet.Certname]json.RawMessage{}, map[fleet.Certname]int64{}
	}
	var changed []string
	if string(f.facts[node]) != facts {
		changed = differing(f.facts[node], json.RawMessage(facts))
		f.facts[node] = json.RawMessage(facts)
		f.seqs[node]++
	}
	if f.Queue != nil {
		f.Queue.SetFacts(node, f.seqs[node])
		if len(changed) > 0 {
			f.Queue.Note(compile.FactsChanged, node, changed...)
		}
	}
	return f.seqs[node]
}

// differing names the members in which two objects differ.
func differing(a, b json.RawMessage) (names []string) {
	var was, is map[string]json.RawMessage
	_, _ = json.Unmarshal(a, &was), json.Unmarshal(b, &is) // nothing is an object without members
	for name := range is {
		if !bytes.Equal(was[name], is[name]) {
			names = append(names, name)
		}
	}
	for name := range was {
		if is[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Seq is the sequence of node's facts; zero if it has none.
func (f *Facts) Seq(node fleet.Certname) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seqs[node]
}

// Facts implements compile.Inputs.
func (f *Facts) Facts(_ context.Context, node fleet.Certname) (json.RawMessage, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if facts, ok := f.facts[node]; ok {
		return facts, f.seqs[node], nil
	}
	return nil, 0, fault.New(fault.NotFound, "there are no facts of %s", node)
}

// Results remembers what was saved.
type Results struct {
	Queue *Queue // nil: it takes what comes of any lease
	mu    sync.Mutex
	saved []compile.Result
	fail  error
	given map[fleet.Certname]compile.Compilation
	holds func(compile.Compilation) bool
}

// Brake holds what fits from now on; nil: nothing.
func (r *Results) Brake(fits func(compile.Compilation) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds = fits
}

// Held implements compile.Results.
func (r *Results) Held(_ context.Context, c compile.Compilation) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds != nil && r.holds(c), r.fail
}

// Fail makes SaveCatalog return err until it is called with nil.
func (r *Results) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// SaveCatalog implements compile.Results.
func (r *Results) SaveCatalog(_ context.Context, result compile.Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	if r.Queue != nil && !r.Queue.leased(result.Compilation) {
		return fault.New(fault.Conflict, "compilation %d is not leased any more", result.Compilation.ID)
	}
	if r.holds != nil && r.holds(result.Compilation) {
		return compile.ErrHeld
	}
	r.saved = append(r.saved, result)
	if c := result.Compilation; c.ID >= r.given[c.Node].ID {
		if r.given == nil {
			r.given = map[fleet.Certname]compile.Compilation{}
		}
		r.given[c.Node] = c
	}
	return nil
}

// Newest is the compilation that gave a node's newest catalog.
func (r *Results) Newest(node fleet.Certname) (compile.Compilation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.given[node]
	return c, ok
}

// Saved is what was saved, in that order.
func (r *Results) Saved() []compile.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.saved)
}

// Gate says that the machine is idle until Set says otherwise.
type Gate struct{ room atomic.Int64 }

// Set says how much room there is.
func (g *Gate) Set(room compile.Room) { g.room.Store(int64(compile.Idle - room)) }

// Room implements compile.Gate.
func (g *Gate) Room(context.Context) compile.Room { return compile.Idle - compile.Room(g.room.Load()) }

// Versions knows environments' versions.
type Versions struct {
	mu       sync.Mutex
	versions map[fleet.Environment]fleet.Digest
}

// Set makes version env's current one.
func (v *Versions) Set(env fleet.Environment, version fleet.Digest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.versions == nil {
		v.versions = map[fleet.Environment]fleet.Digest{}
	}
	v.versions[env] = version
}

// Current implements compile.Versions.
func (v *Versions) Current(_ context.Context, env fleet.Environment) (fleet.Digest, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version, ok := v.versions[env]; ok {
		return version, nil
	}
	return "", fault.New(fault.NotFound, "there is no environment %s", env)
}

// Environments implements compile.Environments.
func (v *Versions) Environments(context.Context) (map[fleet.Environment]fleet.Digest, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.versions), nil
}
