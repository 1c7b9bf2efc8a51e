package server

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
)

// openPreviews wires the preview core to its neighbours.
func (p *parts) openPreviews() error {
	key, err := p.data.sealKey()
	if err != nil {
		return err
	}
	secret, err := key.derived("tutti names of changes 1")
	if err != nil {
		return err
	}
	p.policies = &policy.Service{Store: p.store}
	p.previews = preview.NewService(preview.Config{
		Store: p.store, Compiler: previewer{p}, Bases: previewer{p}, Resolver: previewer{p}, Log: p.log.Logger,
		Comparing: func() (preview.Comparing, error) { return newComparing(p.blobs, secret) },
	})
	return nil
}

// previewer is what previews ask of compilations, catalogs and nodes.
type previewer struct{ *parts }

// Ask implements preview.Compiler. A catalog that stands for the version costs no compilation, and no row.
func (p previewer) Ask(ctx context.Context, env fleet.Environment, version fleet.Digest, nodes []fleet.Certname) ([]preview.Answer, error) {
	answers := make([]preview.Answer, len(nodes))
	for i, node := range nodes {
		var err error
		if answers[i], err = p.ask(ctx, env, version, node); err != nil {
			return nil, err
		}
	}
	p.dispatch.Wake()
	return answers, nil
}

func (p previewer) ask(ctx context.Context, env fleet.Environment, version fleet.Digest, node fleet.Certname) (preview.Answer, error) {
	facts, err := p.store.Facts(ctx, node)
	if fault.Of(err) == fault.NotFound && err != nil {
		return preview.Answer{Node: node, Stands: preview.Impossible, Failure: preview.Failure{Message: "no facts are known of " + string(node)}}, nil //nolint:nilerr // that is the answer
	}
	if err != nil {
		return preview.Answer{}, err
	}
	trusted, err := agentDoor(p).Trusted(ctx, node, nil)
	if err != nil && fault.Of(err) != fault.NotFound { // it may have no certificate
		return preview.Answer{}, err
	}
	if p.config.Load().ReuseCatalogs {
		verdict, err := p.reuser.Judge(ctx, compile.Wish{Node: node, Environment: env, Version: version, Trusted: trusted, Staged: true})
		if err == nil && verdict.Holds {
			from := verdict.From
			return preview.Answer{
				Node: node, Compilation: from.ID, Stands: preview.Compiled, Catalog: from.Catalog, Reused: true, Volatile: firstOf(from.Inputs.Volatile),
			}, nil
		}
	}
	c, err := p.store.Want(ctx, compile.Want{
		Node: node, Environment: env, Version: version, FactsSeq: facts.Seq, Trusted: trusted, Priority: compile.Previewing, At: time.Now(), Staged: true,
	})
	return preview.Answer{Node: node, Compilation: c.ID}, err
}

// Ended implements preview.Compiler.
func (p previewer) Ended(ctx context.Context, compilations []int64) ([]preview.Answer, error) {
	rows, err := p.store.Compilations(ctx, compilations)
	if err != nil {
		return nil, err
	}
	there := make(map[int64]bool, len(rows))
	var ended []preview.Answer
	for _, c := range rows {
		there[c.ID] = true
		a := preview.Answer{Node: c.Node, Compilation: c.ID}
		switch c.State {
		case compile.Done:
			a.Stands, a.Catalog = preview.Compiled, c.Catalog
			if c.Inputs != nil {
				a.Volatile = firstOf(c.Inputs.Volatile)
			}
		case compile.Failed:
			a.Stands, a.Failure = preview.Broken, preview.Failure{Message: c.Err.Message, File: c.Err.File, Line: c.Err.Line}
		case compile.Wanted, compile.Leased:
			continue
		}
		ended = append(ended, a)
	}
	for _, id := range compilations {
		if !there[id] {
			ended = append(ended, preview.Answer{Compilation: id, Stands: preview.Gone})
		}
	}
	return ended, nil
}

func firstOf(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0]
}

// Base implements preview.Bases.
func (p previewer) Base(ctx context.Context, node fleet.Certname) (fleet.Digest, error) {
	known, err := p.store.Catalog(ctx, node)
	if fault.Of(err) == fault.NotFound && err != nil || known.Received {
		return "", nil //nolint:nilerr // it has none
	}
	return known.Digest, err
}

// Resolve implements preview.Resolver.
func (p previewer) Resolve(ctx context.Context, env fleet.Environment, t api.JobTargets) ([]fleet.Certname, error) {
	if t.All || len(t.Nodes) > 0 || t.Group != "" || t.Query != "" || t.App != "" {
		return targets(p).Resolve(ctx, job.Targets{Nodes: certnames(t.Nodes), Group: t.Group, Query: t.Query, App: t.App, All: t.All, Exclude: certnames(t.Exclude)})
	}
	standing, err := p.store.Standings(ctx, env)
	if err != nil {
		return nil, err
	}
	var nodes []fleet.Certname
	for _, s := range standing {
		if !slices.Contains(t.Exclude, string(s.Node)) {
			nodes = append(nodes, s.Node)
		}
	}
	slices.Sort(nodes)
	return nodes, nil
}

func certnames(names []string) []fleet.Certname {
	list := make([]fleet.Certname, len(names))
	for i, name := range names {
		list[i] = fleet.Certname(name)
	}
	return list
}

// comparing is preview.Comparing over package diff.
type comparing struct {
	blobs  cas.Store
	groups *diff.Grouper
}

func newComparing(blobs cas.Store, secret []byte) (preview.Comparing, error) {
	shower := diff.NewShower(previewBlobs{blobs}, diff.DefaultLimits())
	groups, err := diff.NewGrouper(diff.GrouperConfig{Secret: secret, Shower: shower})
	return &comparing{blobs, groups}, err
}

// previewBlobs is diff.Blobs.
type previewBlobs struct{ cas.Store }

// Blob implements diff.Blobs.
func (b previewBlobs) Blob(ctx context.Context, d fleet.Digest, limit int64) ([]byte, error) {
	return cas.Bytes(ctx, b.Store, d, limit)
}

// Add implements preview.Comparing.
func (c *comparing) Add(ctx context.Context, number uint32, node fleet.Certname, base, fresh fleet.Digest) (preview.Verdict, error) {
	before, err := c.document(ctx, base)
	if err != nil {
		return preview.NoDifference, err
	}
	after, err := c.document(ctx, fresh)
	if err != nil {
		return preview.NoDifference, err
	}
	difference, err := diff.Compare(before, after)
	switch {
	case err != nil:
		return preview.NoDifference, err
	case c.groups.Add(ctx, diff.Node{Number: number, Name: string(node)}, difference):
		return preview.Different, nil
	case difference.Empty():
		return preview.NoDifference, nil
	default:
		return preview.OrderOnly, nil
	}
}

func (c *comparing) document(ctx context.Context, d fleet.Digest) (*diff.Catalog, error) {
	text, err := cas.Bytes(ctx, c.blobs, d, diff.MaxCatalogBytes)
	if err != nil {
		return nil, err
	}
	return diff.Parse(text)
}

// AddSame implements preview.Comparing.
func (c *comparing) AddSame(number uint32, node fleet.Certname) {
	c.groups.AddSame(diff.Node{Number: number, Name: string(node)})
}

// AddFailure implements preview.Comparing.
func (c *comparing) AddFailure(number uint32, node fleet.Certname, why preview.Failure) {
	c.groups.AddError(diff.Node{Number: number, Name: string(node)}, diff.CompileError(why))
}

// So implements preview.Comparing.
func (c *comparing) So(limit int, nameOf func(uint32) string) (api.FleetDifference, error) {
	return c.groups.Fleet(limit, nameOf)
}

// Members implements preview.Comparing.
func (c *comparing) Members(key string) []uint32 {
	raw, err := hex.DecodeString(key)
	if err != nil || len(raw) != len(diff.Key{}) {
		return nil
	}
	return slices.Collect(c.groups.Nodes(diff.Key(raw)))
}
