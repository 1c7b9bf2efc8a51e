package server

import (
	"context"
	"regexp"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/protocol/node"
	puppetapi "github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/protocol/rest"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/local"
)

// nearby is what a server has that stands near its nodes and far from the records. Its methods give their argument back where there is none.
type nearby struct {
	disk     *local.Store
	link     *near.Link
	intake   near.Intake
	keeper   *near.Keeper
	courier  *near.Courier
	checkins *near.Checkins
	witness  *near.Witness
}

// nearFile is what such a server keeps in its data directory.
const nearFile = "near.db"

// nearSeal is the purpose of the key that it is sealed with.
const nearSeal = "tutti near 1"

// openNear opens what is kept here while the records cannot be reached. A server that stands near its nodes no more still delivers what it
// had acknowledged.
func openNear(p *parts, c settings.Config) error {
	path := p.data.Join(nearFile)
	if !c.Near && !local.Exists(path) {
		return nil
	}
	key, err := p.data.Seal()
	if err != nil {
		return err
	}
	if key, err = key.Of(nearSeal); err != nil {
		return err
	}
	n := &nearby{link: near.NewLink(&near.Link{Ask: p.store.Reach, Log: p.log.Logger})}
	if n.disk, err = local.Open(path, local.Config{MostBytes: c.NearQueueBytes, Seal: key, Admit: p.disk.Admit}); err != nil {
		return err
	}
	n.intake = near.Intake{Link: n.link, Queue: n.disk, Now: time.Now}
	p.leftover = n
	if c.Near {
		p.near = n
	}
	return nil
}

// joinNear gives it what was opened since.
func joinNear(p *parts, c settings.Config) (err error) {
	n := p.leftover
	if n == nil {
		return nil
	}
	n.courier = &near.Courier{
		Link: n.link, Queue: n.disk, Now: time.Now, Log: p.log.Logger,
		Reports: heardReports{p.store.Reports, p.events}, Facts: p.store.Facts, Events: p.store.Events,
		Submissions: factShelf{p.places, p.trust, p.store.Facts, p.log.Logger},
	}
	n.keeper, err = near.NewKeeper(&near.Keeper{
		Link: n.link, Shelf: n.disk, Pointers: p.deliver, Documents: documents{p.blobs}, For: c.NearCatalogsFor, Now: time.Now, Log: p.log.Logger,
		Fetch: (&fetching{p.library, p.blobs, map[fleet.Environment]fleet.Digest{}}).fetch,
	})
	if err != nil {
		return err
	}
	n.witness = &near.Witness{Intake: n.intake, Log: p.log.Logger}
	n.checkins = &near.Checkins{Service: p.checkin, Keeper: n.keeper, Witness: n.witness, Intake: n.intake}
	p.metrics.nearFigures(n)
	return nil
}

// nearWork is what such a server does besides.
func nearWork(p *parts) stage {
	n := p.leftover
	if n == nil {
		return stage{}
	}
	all := stage{"way to the database": n.link.Run, "what was queued": n.courier.Run}
	if p.near != nil {
		all["kept catalogs"] = n.keeper.Run
		all["word of this server"] = func(ctx context.Context) error {
			return n.say(ctx, func(ctx context.Context, now lease.Near) error { return p.store.Leases.SayNear(ctx, p.id, now) })
		}
	}
	return all
}

// say tells the records how this server stands, when that has changed and they can be reached: that the way is back, as soon as it is.
func (n *nearby) say(ctx context.Context, tell func(context.Context, lease.Near) error) error {
	tick := time.NewTicker(lease.Shared().Renew)
	defer tick.Stop()
	var told lease.Near
	for {
		changed := n.link.Changed()
		if now := n.state(); now != told && n.sayOnce(ctx, now, tell) == nil {
			told = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
		}
	}
}

// sayOnce does not wait for records that cannot be reached: what it says would be old by the time that they can.
func (n *nearby) sayOnce(ctx context.Context, now lease.Near, tell func(context.Context, lease.Near) error) error {
	ctx, done := n.link.While(ctx)
	defer done()
	if err := ctx.Err(); err != nil {
		return err
	}
	return tell(ctx, now)
}

// state is how this server stands.
func (n *nearby) state() lease.Near {
	from, until := n.link.Last()
	load := n.disk.Load()
	return lease.Near{
		CutAt: from, BackAt: until, Queued: load.Pieces, QueuedBytes: load.Bytes, Aside: load.Aside,
		Kept: n.keeper.Count(), Served: n.witness.Served(), Delivered: n.courier.Delivered(),
	}
}

// cut says whether nodes are served without the records now.
func (n *nearby) cut() bool {
	if n == nil {
		return false
	}
	_, cut := n.link.Cut()
	return cut
}

// status is what /status says of it.
func (n *nearby) status(bool) map[string]any {
	s := n.state()
	told := map[string]any{
		"cut": !s.CutAt.IsZero() && s.BackAt.IsZero(), "queued": s.Queued, "queued_bytes": s.QueuedBytes, "set_aside": s.Aside, "kept_catalogs": s.Kept,
		"served_kept": s.Served, "delivered": s.Delivered,
	}
	if !s.CutAt.IsZero() {
		told["cut_at"] = s.CutAt.UTC()
	}
	if !s.BackAt.IsZero() {
		told["back_at"] = s.BackAt.UTC()
	}
	return told
}

// setAside is what the records refused for good; nil where there cannot be any.
func (n *nearby) setAside() rest.SetAside {
	if n == nil {
		return nil
	}
	return n.disk
}

func (n *nearby) close() error {
	if n == nil {
		return nil
	}
	return n.disk.Close()
}

func (n *nearby) runFacts(facts checkin.Facts) checkin.Facts {
	if n == nil {
		return facts
	}
	return near.RunFacts{Facts: facts, Intake: n.intake}
}

func (n *nearby) reports(reports inventory.ReportStore) inventory.ReportStore {
	if n == nil {
		return reports
	}
	return near.Reports{ReportStore: reports, Intake: n.intake}
}

func (n *nearby) stream(events event.Store) event.Store {
	if n == nil {
		return events
	}
	return near.NewStream(events, n.intake)
}

func (n *nearby) submissions(facts node.Facts) node.Facts {
	if n == nil {
		return facts
	}
	return near.Submissions{Service: facts, Intake: n.intake}
}

func (n *nearby) checkin(service checkin.Service) puppetapi.Checkin {
	if n == nil {
		return service
	}
	return n.checkins
}

func (n *nearby) places(places checkin.Environments) puppetapi.Places {
	if n == nil {
		return places
	}
	return near.Places{Environments: places, Keeper: n.keeper, Intake: n.intake}
}

func (n *nearby) roles(of func(context.Context, fleet.Actor) (fleet.Actor, error)) func(context.Context, fleet.Actor) (fleet.Actor, error) {
	if n == nil {
		return of
	}
	return near.Roles{Certificate: of, Intake: n.intake}.Of
}

func (n *nearby) versions(versions puppetapi.Versions) puppetapi.Versions {
	if n == nil {
		return versions
	}
	return near.Versions{Store: versions, Keeper: n.keeper, Intake: n.intake}
}

func (n *nearby) deliveries(deliveries node.Deliveries) node.Deliveries {
	if n == nil {
		return deliveries
	}
	return near.Deliveries{Service: deliveries, Keeper: n.keeper, Witness: n.witness, Intake: n.intake}
}

func (n *nearby) blobs(blobs cas.Store) cas.Store {
	if n == nil {
		return blobs
	}
	return near.Documents{Store: blobs, Keeper: n.keeper}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// fetching brings content to this server's disk. Only the keeper's loop uses it.
type fetching struct {
	library *code.Library
	blobs   cas.Store
	plugins map[fleet.Environment]fleet.Digest // the version of each whose plugins are here: all of its nodes have the same
}

// contentOf finds the files of a static catalog.
var contentOf = regexp.MustCompile(`\{sha256\}([0-9a-f]{64})`)

// fetch reads what a node needs that is given a catalog: its files, and the plugins of its version. What cannot be had now comes when it is asked for.
func (f *fetching) fetch(ctx context.Context, k near.Kept) {
	for _, found := range contentOf.FindAllSubmatch(k.Document, -1) {
		f.one(ctx, fleet.Digest(found[1]))
	}
	env, version := k.Pointer.Environment, k.Pointer.Version
	if f.plugins[env] != version && f.pluginsOf(ctx, env, version) {
		f.plugins[env] = version
	}
}

// pluginsOf says whether all of them came.
func (f *fetching) pluginsOf(ctx context.Context, env fleet.Environment, version fleet.Digest) bool {
	tree, err := f.library.Tree(ctx, env, version)
	if err != nil {
		return false
	}
	came := true
	for _, mount := range []string{"plugins", "pluginfacts", "locales"} {
		all, err := tree.Metadatas(ctx, mount, "", code.SearchOptions{Recurse: true, MetadataOptions: code.MetadataOptions{Links: "follow"}})
		if err != nil {
			came = came && fault.Is(err, fault.NotFound) // no module has any
			continue
		}
		for _, m := range all {
			if m.RelativePath == nil || m.Type != "file" {
				continue
			}
			file, err := tree.Content(mount, *m.RelativePath)
			came = err == nil && f.one(ctx, file.Digest) && came
		}
	}
	return came
}

func (f *fetching) one(ctx context.Context, digest fleet.Digest) bool {
	blob, err := f.blobs.Open(ctx, digest)
	return err == nil && blob.Close() == nil
}

// nearFigures registers what can be asked of a server near its nodes.
func (m *metrics) nearFigures(n *nearby) {
	m.gauge("tutti_near_cut", "Whether the database cannot be reached, and nodes get kept catalogs: 1 or 0.", func() float64 { return oneIf(n.cut()) })
	m.gauge("tutti_near_queue_pieces", "Facts, reports and events that wait on this server's disk for the database.", func() float64 {
		return float64(n.disk.Load().Pieces)
	})
	m.gauge("tutti_near_queue_bytes", "What they take, packed.", func() float64 { return float64(n.disk.Load().Bytes) })
	m.gauge("tutti_near_set_aside", "Pieces that the database refused for good.", func() float64 { return float64(n.disk.Load().Aside) })
	m.gauge("tutti_near_kept_catalogs", "Nodes whose catalog is kept here.", func() float64 { return float64(n.keeper.Count()) })
	m.counter("tutti_near_delivered_total", "Pieces that were delivered after the database was back.", func() float64 { return float64(n.courier.Delivered()) })
	m.counter("tutti_near_served_total", "Kept catalogs that were given to nodes.", func() float64 { return float64(n.witness.Served()) })
}
