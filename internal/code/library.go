package code

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// Library is the versions of all environments: rows that say which there are,
// blobs that hold them, and the last ones asked for as trees in memory. It may
// be used concurrently.
type Library struct {
	store     Store
	blobs     cas.Store
	checksums *checksums
	loading   singleflight.Group
	currents  currents
	others    func(id string) // tells other servers that something is current there; see Share

	// deploying is held for reading from the moment when a deploy has made sure
	// of its blobs until a row refers to them, so that Sweep cannot come between.
	deploying sync.RWMutex

	mu    sync.Mutex
	trees map[treeKey]*list.Element
	order *list.List // of *Tree, the last used first
}

type treeKey struct {
	env fleet.Environment
	id  VersionID
}

// maxTrees is how many trees are kept: 20 000 files take about 10 MB.
const maxTrees = 16

// NewLibrary returns a library over rows and blobs.
func NewLibrary(store Store, blobs cas.Store) *Library {
	return &Library{
		store: store, blobs: blobs, checksums: newChecksums(blobs),
		trees: map[treeKey]*list.Element{}, order: list.New(), others: func(string) {},
	}
}

// Share has other servers that use the same rows told of deploys by this one, and this one of theirs. Without it they see them within a second.
// It is called before the Library is used.
func (l *Library) Share(relay *hint.Relay) {
	l.others = relay.Join("code", func(string) { l.currents.changed() })
}

// changed has everybody ask again what is current.
func (l *Library) changed() {
	l.currents.changed()
	l.others("")
}

// Deployment asks for a version to become the current one of an environment. A manifest without an engine gets that of the
// environment's current version, one with DefaultEngine none: so an environment keeps its engine until it is told another one.
type Deployment struct {
	Environment fleet.Environment
	Manifest    Manifest
	Commit      string
	Origin      string // without credentials
	Actor       string
	At          time.Time
}

// The bounds of what a deployment says of itself.
const (
	maxCommitBytes = 128
	maxOriginBytes = 2048
)

// Deploy makes a manifest's version the current one of its environment, and says whether there was none before. All its
// files must be stored: Conflict, naming the first ones that are not.
func (l *Library) Deploy(ctx context.Context, d Deployment) (Version, error) {
	defer l.changed()
	_, err := l.store.CurrentVersion(ctx, d.Environment)
	first := fault.Is(err, fault.NotFound)
	if err != nil && !first {
		return Version{}, err
	}
	v, err := l.keep(ctx, d, l.store.SaveVersion)
	v.First = first
	return v, err
}

// Stage keeps a manifest's version, so that it can be compiled and looked at; the environment stays as it is.
// It refuses what Deploy does.
func (l *Library) Stage(ctx context.Context, d Deployment) (Version, error) {
	return l.keep(ctx, d, l.store.StageVersion)
}

// keep stores a version whose files are there, and then its row.
func (l *Library) keep(ctx context.Context, d Deployment, save func(context.Context, Version) error) (v Version, err error) {
	if err := d.check(); err != nil {
		return Version{}, err
	}
	if d.Manifest.Engine, err = l.engine(ctx, d); err != nil {
		return Version{}, err
	}
	canonical, err := d.Manifest.Encode()
	if err != nil {
		return Version{}, err
	}
	l.deploying.RLock()
	defer l.deploying.RUnlock()
	if err := l.demand(ctx, d.Environment, d.Manifest); err != nil {
		return Version{}, err
	}
	id, _, err := l.blobs.Put(ctx, bytes.NewReader(canonical))
	if err != nil {
		return Version{}, fmt.Errorf("store the manifest: %w", err)
	}
	v = Version{
		ID: id, Environment: d.Environment, Commit: d.Commit, Origin: d.Origin, Actor: d.Actor, Engine: d.Manifest.Engine,
		Files: len(d.Manifest.Files), Bytes: d.Manifest.Size(), DeployedAt: d.At,
	}
	return v, save(ctx, v)
}

// engine is the engine of what is deployed.
func (l *Library) engine(ctx context.Context, d Deployment) (string, error) {
	switch d.Manifest.Engine {
	case DefaultEngine:
		return "", nil
	case "":
		current, err := l.store.CurrentVersion(ctx, d.Environment)
		if err != nil && fault.Of(err) != fault.NotFound {
			return "", err
		}
		return current.Engine, nil
	default:
		return d.Manifest.Engine, nil
	}
}

// Remove forgets an environment and its versions; NotFound if there is none.
func (l *Library) Remove(ctx context.Context, env fleet.Environment) error {
	defer l.changed()
	return l.store.RemoveEnvironment(ctx, env)
}

func (d Deployment) check() error {
	if _, err := fleet.ParseEnvironment(string(d.Environment)); err != nil {
		return err
	}
	if len(d.Commit) > maxCommitBytes || len(d.Origin) > maxOriginBytes {
		return fault.New(fault.Invalid, "the commit has %d bytes and the origin %d, at most %d and %d are allowed",
			len(d.Commit), len(d.Origin), maxCommitBytes, maxOriginBytes)
	}
	return d.Manifest.Check()
}

// demand makes sure that a manifest's files are stored, with the sizes that it says, and renews their age.
func (l *Library) demand(ctx context.Context, env fleet.Environment, m Manifest) error {
	missing, err := l.blobs.Missing(ctx, m.Digests())
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return l.sized(ctx, env, m)
	}
	first := make([]string, 0, 3)
	lacks := make(map[fleet.Digest]bool, len(missing))
	for _, d := range missing {
		lacks[d] = true
	}
	for _, f := range m.Files {
		if f.Kind == Regular && lacks[f.Digest] && len(first) < cap(first) {
			first = append(first, f.Path)
		}
	}
	return fault.New(fault.Conflict, "%d of the version's contents are not stored, the first ones are of %s: upload them, then deploy again",
		len(missing), strings.Join(first, ", "))
}

// sized refuses a manifest that says another size of a file than its content has: agents are told what it says.
// Files that the environment's present version names were looked at already, as far as it is remembered.
func (l *Library) sized(ctx context.Context, env fleet.Environment, m Manifest) error {
	known := map[fleet.Digest]int64{}
	if v, there := l.currents.of(env); there {
		if tree := l.remembered(treeKey{env, v.ID}); tree != nil {
			for _, f := range tree.Manifest().Files {
				known[f.Digest] = f.Size
			}
		}
	}
	for _, f := range m.Files {
		if size, there := known[f.Digest]; f.Kind != Regular || there && size == f.Size {
			continue
		}
		size, err := cas.Fill(ctx, l.blobs, f.Digest, nil)
		if err != nil {
			return fmt.Errorf("look at the content of %s: %w", f.Path, err)
		}
		if size != f.Size {
			return fault.New(fault.Invalid, "the manifest says that %.200s has %d bytes, but its content %s has %d; make the manifest anew from the files",
				f.Path, f.Size, f.Digest.Short(), size)
		}
		known[f.Digest] = size
	}
	return nil
}

// Current returns the tree that an environment uses now. What this Library
// deployed or removed is seen at once, what others did after at most a second.
func (l *Library) Current(ctx context.Context, env fleet.Environment) (*Tree, error) {
	v, known := l.currents.of(env)
	if !known {
		var err error
		if v, err = l.Refresh(ctx, env); err != nil {
			return nil, err
		}
	}
	tree, err := l.Tree(ctx, env, v.ID)
	if err != nil {
		return nil, err
	}
	return l.deployedAt(tree, v.DeployedAt), nil
}

// Refresh asks the rows which version an environment uses now, whoever deployed
// it. Current goes by what it found.
func (l *Library) Refresh(ctx context.Context, env fleet.Environment) (Version, error) {
	return l.currents.ask(ctx, l.store, env)
}

// Tree returns a version as a tree of the given environment; NotFound when its
// manifest is not stored. The same version is the same pointer as long as it is
// remembered.
func (l *Library) Tree(ctx context.Context, env fleet.Environment, id VersionID) (*Tree, error) {
	key := treeKey{env, id}
	if tree := l.remembered(key); tree != nil {
		return tree, nil
	}
	loaded := l.loading.DoChan(string(env)+" "+string(id), func() (any, error) {
		// The first caller may leave; the others still want the answer.
		return l.load(context.WithoutCancel(ctx), key)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-loaded:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*Tree), nil
	}
}

func (l *Library) load(ctx context.Context, key treeKey) (*Tree, error) {
	if tree := l.remembered(key); tree != nil {
		return tree, nil
	}
	m, err := l.Manifest(ctx, key.id)
	if err != nil {
		return nil, err
	}
	at, err := l.whenDeployed(ctx, key)
	if err != nil {
		return nil, err
	}
	return l.remember(newTree(key.id, key.env, at, m, l.checksums)), nil
}

// Manifest reads a version's manifest.
func (l *Library) Manifest(ctx context.Context, id VersionID) (Manifest, error) {
	text, err := cas.Bytes(ctx, l.blobs, id, MaxManifestBytes)
	if fault.Of(err) == fault.NotFound {
		return Manifest{}, fault.Wrap(fault.NotFound, err, "there is no version %s", id.Short())
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("read the manifest of %s: %w", id.Short(), err)
	}
	return ParseManifest(text)
}

// recentVersions is how far back a version's time is looked for.
const recentVersions = 1000

func (l *Library) whenDeployed(ctx context.Context, key treeKey) (time.Time, error) {
	versions, err := l.store.Versions(ctx, key.env, recentVersions)
	if err != nil {
		return time.Time{}, err
	}
	for _, v := range versions {
		if v.ID == key.id {
			return v.DeployedAt, nil
		}
	}
	return time.Unix(0, 0), nil
}

func (l *Library) remembered(key treeKey) *Tree {
	l.mu.Lock()
	defer l.mu.Unlock()
	element, ok := l.trees[key]
	if !ok {
		return nil
	}
	l.order.MoveToFront(element)
	return element.Value.(*Tree)
}

// remember keeps a tree instead of the one that is kept for its version.
func (l *Library) remember(tree *Tree) *Tree {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := treeKey{tree.env, tree.id}
	if element, ok := l.trees[key]; ok {
		element.Value = tree
		l.order.MoveToFront(element)
		return tree
	}
	l.trees[key] = l.order.PushFront(tree)
	if l.order.Len() > maxTrees {
		oldest := l.order.Remove(l.order.Back()).(*Tree)
		delete(l.trees, treeKey{oldest.env, oldest.id})
	}
	return tree
}

// deployedAt gives a tree another time, for a version that was deployed again.
func (l *Library) deployedAt(tree *Tree, at time.Time) *Tree {
	if tree.at.Equal(at) {
		return tree
	}
	again := *tree
	again.at = at
	return l.remember(&again)
}

// Sweep removes the blobs that nothing refers to and nobody touched for grace,
// which is the time that a client has between its upload and its deploy.
// Every version that a row knows keeps its manifest and files; alive adds what
// others refer to (it is called once, after the sweep's time is fixed).
func (l *Library) Sweep(ctx context.Context, grace time.Duration,
	alive func(ctx context.Context, keep func(fleet.Digest)) error,
) (removed int, freed int64, err error) {
	before, ids, err := l.roots(ctx, grace)
	if err != nil {
		return 0, 0, err
	}
	kept := map[fleet.Digest]struct{}{}
	keep := func(d fleet.Digest) { kept[d] = struct{}{} }
	for _, id := range ids {
		if err := l.keepVersion(ctx, id, keep); err != nil {
			return 0, 0, err
		}
	}
	if alive != nil {
		if err := alive(ctx, keep); err != nil {
			return 0, 0, err
		}
	}
	return l.blobs.Sweep(ctx, func(d fleet.Digest) bool { _, ok := kept[d]; return ok }, before)
}

// roots fixes the time of a sweep at a moment when no deploy is half done.
func (l *Library) roots(ctx context.Context, grace time.Duration) (time.Time, []VersionID, error) {
	l.deploying.Lock()
	defer l.deploying.Unlock()
	before := time.Now().Add(-grace)
	ids, err := l.store.VersionIDs(ctx)
	return before, ids, err
}

// keepVersion stops the sweep when a manifest cannot be read: its files would
// be lost with it.
func (l *Library) keepVersion(ctx context.Context, id VersionID, keep func(fleet.Digest)) error {
	keep(id)
	m, err := l.Manifest(ctx, id)
	if err != nil {
		return fmt.Errorf("collect the blobs in use: %w", err)
	}
	for _, f := range m.Files {
		if f.Kind == Regular {
			keep(f.Digest)
		}
	}
	return nil
}
