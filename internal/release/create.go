package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/parallel"
)

// MaxDescription is how many bytes a description has at most.
const MaxDescription = 2000

// maxTime bounds what is waited for.
const maxTime = 7 * 24 * time.Hour

// Order asks for a release.
type Order struct {
	Options
	Preview     int64            // of Forward
	Targets     api.JobTargets   // which of the preview's nodes; none: all that change
	Of          int64            // of Rollback: the release that is taken back
	Nodes       []fleet.Certname // of Rollback: instead, nodes
	To          int64            // of Rollback of nodes: the generation
	Waves       []string
	Description string
	Refresh     bool // a new preview is made for nodes that are superseded
	// Allowed says whether who asks may release to these nodes in an environment; nil: to all.
	Allowed func(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) error
}

// Plan is what an order would do now, or what became of it.
type Plan struct {
	Release   Release // stored if it has an ID
	Targets   []Target
	Already   int       // nodes that have it already and are left alone
	Findings  []Finding // of rules
	Frozen    *Freeze
	Refreshed int64 // preview of the superseded nodes; 0: there is none
}

func (o Order) check() error {
	switch {
	case o.MaxFailures != nil && *o.MaxFailures < 0:
		return fault.New(fault.Invalid, "field max_failures: it must not be negative; leave it out for no budget")
	case o.Concurrency < 0:
		return fault.New(fault.Invalid, "field concurrency: it must not be negative; 0 means no limit")
	case !slices.Contains(Promotions(), o.Promotion):
		return fault.New(fault.Invalid, "field promote: it is auto, manual or soak, not %.40q", o.Promotion)
	case (o.Promotion == Soaked) != (o.Soak > 0) || o.Soak > maxTime:
		return fault.New(fault.Invalid, "field soak: it is the time between waves, at most %s, and given with promote soak only", maxTime)
	case o.Timeout < 0 || o.Timeout > maxTime || o.WaitOffline < 0 || o.WaitOffline > maxTime:
		return fault.New(fault.Invalid, "field timeout, wait_offline: they are at most %s", maxTime)
	case len(o.Description) > MaxDescription:
		return fault.New(fault.Invalid, "field description: it has at most %d bytes", MaxDescription)
	}
	return nil
}

// Planner finds out what a release would give to whom, and makes it.
type Planner struct {
	records    *Records
	recipients recipients
	previews   Previews
	delivery   Delivery
	resolver   Resolver
	gate       Gate
	wake       func() // the worker
}

// Plan says what an order would do now. Nothing is stored, and nothing begins.
func (l *Planner) Plan(ctx context.Context, actor fleet.Actor, o Order) (Plan, error) {
	p, _, err := l.plan(ctx, actor, o)
	return p, err
}

// Create makes a release: when it returns the release survives a crash, and begins by itself, unless it waits for an
// approval. Conflict if there is no node that it can be released to.
func (l *Planner) Create(ctx context.Context, actor fleet.Actor, o Order) (Plan, error) {
	plan, source, err := l.plan(ctx, actor, o)
	if err != nil {
		return plan, err
	}
	if o.Refresh {
		if plan.Refreshed, err = l.refresh(ctx, actor, source, plan.Targets); err != nil {
			return plan, err
		}
	}
	if plan.Release.Counts[Waiting] == 0 {
		return plan, nobody(plan)
	}
	verdict := Verdict{Findings: plan.Findings}
	if f, denied := verdict.denied(); denied {
		return plan, fault.New(fault.Conflict, "rule %s denies it: %s", f.Rule, f.Message)
	}
	entries := []Entry{{At: plan.Release.CreatedAt, By: actor.Name, Text: "made the release"}}
	for _, f := range plan.Findings {
		entries = append(entries, Entry{At: plan.Release.CreatedAt, Text: fmt.Sprintf("rule %s: %s: %s", f.Rule, f.Effect, f.Message)})
	}
	plan.Release, err = l.records.store.CreateRelease(ctx, plan.Release, plan.Targets, entries)
	if err != nil {
		return plan, err
	}
	l.records.log.InfoContext(ctx, "release made", "release", plan.Release.ID, "kind", plan.Release.Kind, "preview",
		plan.Release.Preview, "targets", len(plan.Targets), "actor", actor.Name)
	l.wake()
	return plan, nil
}

// nobody says why a release has no node to begin with.
func nobody(p Plan) error {
	for _, t := range p.Targets {
		if t.State == Superseded || t.State == Refused {
			others := ""
			if n := len(p.Targets) - 1; n > 0 {
				others = fmt.Sprintf(" (and %d more)", n)
			}
			return fault.New(fault.Conflict, "there is no node to release to; %s%s: %s", t.Node, others, t.Reason)
		}
	}
	if p.Already > 0 {
		return fault.New(fault.Conflict, "there is nothing to release: what is meant has it already (%s)", fault.Count(p.Already, "node"))
	}
	return fault.New(fault.Invalid, "field targets: no node is meant")
}

func (l *Planner) plan(ctx context.Context, actor fleet.Actor, o Order) (plan Plan, source Preview, err error) {
	o.Promotion = cmp.Or(o.Promotion, Automatic)
	if err := o.check(); err != nil {
		return plan, source, err
	}
	plan.Release = Release{
		Kind: Forward, Preview: o.Preview, Description: o.Description, Author: actor.Name, AuthorKind: actor.Kind, Options: o.Options, State: Running,
		CreatedAt: l.records.now(),
	}
	seed := uint64(o.Preview) //nolint:gosec // any number
	if o.Preview != 0 {
		if source, err = l.source(ctx, o.Preview); err == nil {
			plan.Release.Environment, plan.Release.Version = source.Environment, source.Version
			err = l.forward(ctx, o, source, &plan)
		}
	} else {
		plan.Release.Kind, plan.Release.Of = Rollback, o.Of
		seed = uint64(o.Of) //nolint:gosec // any number
		err = l.backward(ctx, o, &plan)
	}
	if err != nil {
		return plan, source, err
	}
	if err := l.intoWaves(ctx, o.Waves, seed, &plan); err != nil {
		return plan, source, err
	}
	return plan, source, l.judge(ctx, &plan)
}

// source is a preview that can be released.
func (l *Planner) source(ctx context.Context, id int64) (Preview, error) {
	p, err := l.previews.Preview(ctx, id)
	if err == nil && !p.Ready {
		err = fault.New(fault.Conflict, "preview %d is %s: only one that is ready can be released; wait for it: tutti preview watch %d", id, p.State, id)
	}
	return p, err
}

// atOnce is how many nodes are looked at, or given a catalog, at the same time: their writes share transactions.
const atOnce = 16

// pageSize is how many rows are read at once.
const pageSize = 1000

// forward finds the targets of a preview's release.
func (l *Planner) forward(ctx context.Context, o Order, p Preview, plan *Plan) error {
	meant, err := l.meant(ctx, o.Targets)
	if err != nil {
		return err
	}
	var shares []Share
	for behind := 0; ; {
		page, err := l.previews.Shares(ctx, p.ID, behind, pageSize)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		behind = page[len(page)-1].Place
		for _, share := range page {
			switch {
			case meant != nil && !meant[share.Node]:
				continue
			case share.Same:
				plan.Already++
			default:
				shares = append(shares, share)
			}
			delete(meant, share.Node)
		}
	}
	for node := range meant {
		return fault.New(fault.Invalid, "field targets: %s (of %s) is no node of preview %d: preview it first", node, fault.Count(len(meant), "node"), p.ID)
	}
	nodes := make([]fleet.Certname, len(shares))
	for i, share := range shares {
		nodes[i] = share.Node
	}
	if o.Allowed != nil {
		if err := o.Allowed(ctx, p.Environment, nodes); err != nil {
			return err
		}
	}
	handing, err := l.handing(ctx, p.ID)
	if err != nil {
		return err
	}
	plan.Targets = make([]Target, len(shares))
	return parallel.Each(len(shares), atOnce, func(i int) (err error) {
		if other, ok := handing[shares[i].Node]; ok {
			why := fmt.Sprintf(
				"release %d, which is %s, hands it this catalog: go on with that one (tutti release show %d), or end it: tutti release abort %d",
				other.ID, inWords(other.State), other.ID, other.ID,
			)
			plan.Targets[i] = Target{Node: shares[i].Node, State: Waiting, Round: 1}.end(Refused, why)
		} else {
			plan.Targets[i], err = l.shareTarget(ctx, p, shares[i])
		}
		plan.Targets[i].Number = i + 1
		return err
	})
}

// handing is the nodes that releases of a preview which have not ended still have to hand its catalogs to. One catalog is not
// handed out twice: nobody could tell which release a node's run belongs to.
func (l *Planner) handing(ctx context.Context, preview int64) (map[fleet.Certname]Release, error) {
	open, err := l.records.store.OpenReleases(ctx)
	if err != nil {
		return nil, err
	}
	handing := map[fleet.Certname]Release{}
	for _, r := range open {
		if r.Preview != preview {
			continue
		}
		targets, err := l.records.all(ctx, r.ID, TargetPage{States: []Standing{Waiting, Sent, AtWork}})
		if err != nil {
			return nil, err
		}
		for _, t := range targets {
			handing[t.Node] = r
		}
	}
	return handing, nil
}

// meant is the nodes that targets name; nil if they name none.
func (l *Planner) meant(ctx context.Context, targets api.JobTargets) (map[fleet.Certname]bool, error) {
	if len(targets.Nodes) == 0 && targets.Group == "" && targets.Query == "" && !targets.All {
		return nil, nil //nolint:nilnil // none is named
	}
	nodes, err := l.resolver.Resolve(ctx, targets)
	meant := make(map[fleet.Certname]bool, len(nodes))
	for _, node := range nodes {
		meant[node] = true
	}
	if err == nil && len(nodes) == 0 {
		err = fault.New(fault.Invalid, "field targets: no node is meant")
	}
	return meant, err
}

// shareTarget is a share's target, as it stands now.
func (l *Planner) shareTarget(ctx context.Context, p Preview, share Share) (Target, error) {
	t := Target{Node: share.Node, State: Waiting, Round: 1}
	if share.Failure != "" {
		return t.end(Refused, "there is no catalog for it: "+strings.Join(strings.Fields(share.Failure), " ")), nil
	}
	catalog, err := l.previews.Catalog(ctx, p, share)
	if fault.Is(err, fault.NotFound) {
		return t.end(Superseded, "its previewed catalog is not known any more: preview it again"), nil // that is the answer
	}
	if err != nil {
		return t, err
	}
	t.Base, t.Catalog = share.Base, catalog
	return l.recipients.examine(ctx, t, 0, true)
}

// intoWaves spreads the targets that wait over waves, and names what is released to whom.
func (l *Planner) intoWaves(ctx context.Context, sizes []string, seed uint64, plan *Plan) error {
	for _, text := range sizes { // also if no node is left to put into a wave
		if _, err := parseSize(text); err != nil {
			return err
		}
	}
	r := &plan.Release
	var nodes []fleet.Certname
	for _, t := range plan.Targets {
		if t.State == Waiting {
			nodes = append(nodes, t.Node)
		}
	}
	waves, place, err := Spread(sizes, nodes, seed, func(group string) ([]fleet.Certname, error) { return l.resolver.Members(ctx, group) })
	if err != nil && len(nodes) > 0 {
		return err
	}
	r.Waves = waves
	for i := range plan.Targets {
		plan.Targets[i].Wave = place[plan.Targets[i].Node]
	}
	r.Tally(CountWaves(plan.Targets))
	r.Digest = digestOf(*r, plan.Targets)
	return nil
}

// digestOf names what is released to whom in which wave.
func digestOf(r Release, targets []Target) fleet.Digest {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %d %d\n", r.Kind, r.Preview, r.Of)
	for _, t := range targets {
		if t.Wave > 0 {
			fmt.Fprintf(&text, "%s %d %s %s %s\n", t.Node, t.Wave, t.Catalog.Environment, t.Catalog.Version, t.Catalog.Digest)
		}
	}
	return fleet.DigestOf([]byte(text.String()))
}

// judge asks the gate about a release that is about to be made.
func (l *Planner) judge(ctx context.Context, plan *Plan) error {
	r := &plan.Release
	verdict, err := l.gate.Judge(ctx, question(*r, plan.Targets, 0, l.records.now()))
	if err != nil {
		return err
	}
	plan.Findings, plan.Frozen = verdict.Findings, verdict.Frozen
	if r.Needs = verdict.needs(r.ApproveBy); len(r.Needs) > 0 {
		r.State, r.Reason = WaitingApproval, "it waits for the approval of "+rolesOf(r.Needs)
	}
	return nil
}

func rolesOf(needs []Need) string {
	var roles []string
	for _, n := range needs {
		if !slices.Contains(roles, n.Role) {
			roles = append(roles, n.Role)
		}
	}
	return strings.Join(roles, " and ")
}

// question is what the gate is asked.
func question(r Release, targets []Target, wave int, now time.Time) Question {
	q := Question{
		Release: r.ID, Kind: r.Kind, Preview: r.Preview, Environments: environmentsOf(targets), Author: r.Author, AuthorKind: r.AuthorKind, Digest: r.Digest,
		Wave: wave, At: now,
	}
	for _, w := range r.Waves {
		q.Waves = append(q.Waves, w.Nodes)
	}
	for _, t := range targets {
		if t.Wave > 0 {
			q.Nodes = append(q.Nodes, t.Node)
		}
	}
	return q
}

// environmentsOf is those of the catalogs that targets are given, by name.
func environmentsOf(targets []Target) []fleet.Environment {
	of := map[fleet.Environment]bool{}
	for _, t := range targets {
		if t.Catalog.Digest != "" {
			of[t.Catalog.Environment] = true
		}
	}
	return slices.Sorted(maps.Keys(of))
}

// Refresh makes a new preview of the nodes of a release that are superseded. Conflict if there are none.
func (l *Planner) Refresh(ctx context.Context, actor fleet.Actor, id int64) (preview int64, err error) {
	r, err := l.records.Release(ctx, id)
	if err != nil {
		return 0, err
	}
	if r.Kind != Forward {
		return 0, fault.New(fault.Conflict, "release %d is a roll back: there is no preview of it", id)
	}
	targets, err := l.records.all(ctx, id, TargetPage{States: []Standing{Superseded}})
	if err != nil {
		return 0, err
	}
	source, err := l.previews.Preview(ctx, r.Preview)
	if err != nil {
		return 0, err
	}
	if preview, err = l.refresh(ctx, actor, source, targets); err == nil && preview == 0 {
		err = fault.New(fault.Conflict, "no node of release %d is superseded", id)
	}
	return preview, err
}

func (l *Planner) refresh(ctx context.Context, actor fleet.Actor, source Preview, targets []Target) (int64, error) {
	var nodes []fleet.Certname
	for _, t := range targets {
		if t.State == Superseded {
			nodes = append(nodes, t.Node)
		}
	}
	if len(nodes) == 0 || source.ID == 0 {
		return 0, nil
	}
	return l.previews.Again(ctx, actor, source, nodes)
}
