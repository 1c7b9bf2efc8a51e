package server

import (
	"context"
	"encoding/hex"
	"iter"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
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
	p.policies = &policy.Service{Store: p.store, Changed: func() { p.releases.Wake() }}
	p.previews = preview.NewService(preview.Config{
		Store: p.store, Compiler: previewer{p}, Bases: previewer{p}, Resolver: previewTargets{p.resolver}, Reach: rbac.Reach, Log: p.log.Logger,
		Comparing: func() (preview.Comparing, error) { return newComparing(p.blobs, secret, p.limits()) },
	})
	return nil
}

// previewer is what previews ask of compilations, catalogs and nodes.
type previewer struct{ *parts }

// askAtOnce is how many nodes are judged, or wanted, together.
const askAtOnce = 500

// Ask implements preview.Compiler. A catalog that stands for the version costs no compilation, and no row. What reads files that
// differ is wanted before anything else is judged.
func (p previewer) Ask(ctx context.Context, of preview.Preview, nodes []fleet.Certname, tell func([]preview.Answer) error) error {
	var survey *compile.Survey
	if p.config.Load().ReuseCatalogs {
		survey = p.reuser.Survey(p.store, of.Environment, of.Version)
	}
	var others []fleet.Certname
	for chunk := range slices.Chunk(nodes, askAtOnce) {
		touched := chunk
		if survey != nil {
			var stand []fleet.Certname
			var err error
			if touched, stand, err = survey.Touched(ctx, chunk); err != nil {
				return err
			}
			others = append(others, stand...)
		}
		if err := p.tellWanted(ctx, of, touched, tell); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(others, askAtOnce) {
		verdicts, err := survey.Judge(ctx, chunk)
		if err != nil {
			return err
		}
		if err := p.tellJudged(ctx, of, chunk, verdicts, tell); err != nil {
			return err
		}
	}
	return nil
}

// tellJudged tells of catalogs that stand, and has the others compiled. Where the author does not see all nodes, a staged catalog
// whose code asked the inventory stands for nothing: it may say more than the node has, and than the author may know.
func (p previewer) tellJudged(
	ctx context.Context, of preview.Preview, nodes []fleet.Certname, verdicts []compile.Verdict, tell func([]preview.Answer) error,
) error {
	var stand []preview.Answer
	var others []fleet.Certname
	for i, v := range verdicts {
		if !v.Holds || of.Reach != "" && v.From.Staged && len(v.From.Inputs.Asked) > 0 {
			others = append(others, nodes[i])
			continue
		}
		stand = append(stand, preview.Answer{
			Node: nodes[i], Compilation: v.From.ID, Stands: preview.Compiled, Catalog: v.From.Catalog, Reused: true, Volatile: firstOf(v.From.Inputs.Volatile),
		})
	}
	if err := p.tellWanted(ctx, of, others, tell); err != nil {
		return err
	}
	return tell(stand)
}

// tellWanted has catalogs of nodes compiled that have facts.
func (p previewer) tellWanted(ctx context.Context, of preview.Preview, nodes []fleet.Certname, tell func([]preview.Answer) error) error {
	if len(nodes) == 0 {
		return nil
	}
	holdings, err := p.store.Holdings(ctx, nodes)
	if err != nil {
		return err
	}
	var answers []preview.Answer
	var wants []compile.Want
	for _, node := range nodes {
		seq := holdings[node].FactsSeq
		if seq == 0 {
			answers = append(answers, preview.Answer{Node: node, Stands: preview.Impossible, Failure: preview.Failure{Message: "no facts are known of " + string(node)}})
			continue
		}
		wants = append(wants, compile.Want{
			Node: node, Environment: of.Environment, Version: of.Version, FactsSeq: seq, Priority: compile.Previewing, At: time.Now(), Staged: true, Reach: of.Reach,
		})
	}
	rows, err := p.store.WantAll(ctx, wants)
	if err != nil {
		return err
	}
	for _, c := range rows {
		answers = append(answers, preview.Answer{Node: c.Node, Compilation: c.ID})
	}
	p.dispatch.Wake()
	return tell(answers)
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

// Bases implements preview.Bases.
func (p previewer) Bases(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]fleet.Digest, error) {
	bases := make(map[fleet.Certname]fleet.Digest, len(nodes))
	for chunk := range slices.Chunk(nodes, inventory.MaxNamed) {
		holdings, err := p.store.Holdings(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for node, h := range holdings {
			if h.Catalog != "" {
				bases[node] = h.Catalog
			}
		}
	}
	return bases, nil
}

// previewTargets is preview.Resolver.
type previewTargets struct{ target.Resolver }

// Resolve implements preview.Resolver.
func (t previewTargets) Resolve(ctx context.Context, env fleet.Environment, wanted api.JobTargets) ([]fleet.Certname, error) {
	return t.NamedOrOf(ctx, env, wanted)
}

// comparing is preview.Comparing over package diff.
type comparing struct {
	blobs  cas.Store
	limits deliver.Limits
	groups *diff.Grouper
}

func newComparing(blobs cas.Store, secret []byte, limits deliver.Limits) (preview.Comparing, error) {
	shower := diff.NewShower(previewBlobs{blobs}, diff.DefaultLimits())
	groups, err := diff.NewGrouper(diff.GrouperConfig{Secret: secret, Shower: shower})
	return &comparing{blobs, limits, groups}, err
}

// previewBlobs is diff.Blobs.
type previewBlobs struct{ cas.Store }

// Blob implements diff.Blobs.
func (b previewBlobs) Blob(ctx context.Context, d fleet.Digest, limit int64) ([]byte, error) {
	return cas.Bytes(ctx, b.Store, d, limit)
}

// Add implements preview.Comparing.
func (c *comparing) Add(ctx context.Context, number uint32, node fleet.Certname, base, fresh fleet.Digest) (preview.Verdict, error) {
	before, was, err := c.document(ctx, base)
	if err != nil {
		return preview.NoDifference, err
	}
	after, left, err := c.document(ctx, fresh)
	if err != nil {
		return preview.NoDifference, err
	}
	difference, err := diff.Compare(before, after)
	if err != nil {
		return preview.NoDifference, err
	}
	if lost := deliver.Lost(was, left, c.limits); lost != "" {
		c.groups.AddLoss(diff.Node{Number: number, Name: string(node)}, lost, deliver.LostText(lost))
	}
	switch {
	case c.groups.Add(ctx, diff.Node{Number: number, Name: string(node)}, difference):
		return preview.Different, nil
	case difference.Empty():
		return preview.NoDifference, nil
	default:
		return preview.OrderOnly, nil
	}
}

// document reads a catalog, and counts what an agent would apply of it.
func (c *comparing) document(ctx context.Context, d fleet.Digest) (parsed *diff.Catalog, resources int, err error) {
	text, err := cas.Bytes(ctx, c.blobs, d, diff.MaxCatalogBytes)
	if err != nil {
		return nil, 0, err
	}
	if parsed, err = diff.Parse(text); err != nil {
		return nil, 0, err
	}
	resources, err = catalog.CountResources(text)
	return parsed, resources, err
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
	return c.groups.Nodes(diff.Key(raw))
}

// Groups implements preview.Comparing.
func (c *comparing) Groups(nameOf func(uint32) string) iter.Seq2[preview.Group, error] {
	return func(yield func(preview.Group, error) bool) {
		for whole, err := range c.groups.All(nameOf) {
			if !yield(preview.Group{Change: whole.ChangeGroup, Nodes: whole.Numbers}, err) {
				return
			}
		}
	}
}
