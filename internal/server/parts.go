package server

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/codecheck/groupcheck"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/compiler/worktree"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/trace"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/submit"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/protocol/front"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/sql"
	"github.com/tutti-project/tutti/internal/target"
)

// parts is everything a server is made of, opened but not started.
type parts struct {
	config  atomic.Pointer[settings.Config] // as it is now; SIGHUP replaces it
	data    *datadir.Dir
	id      string        // this server's name among those that use the same records
	leases  *lease.Keeper // of what one of them does at a time
	clock   lease.Clock
	shared  *sharedSecrets // nil: this server is alone
	drained chan lease.Drain
	bus     bus.Bus     // to the others
	relay   *hint.Relay // of hints over it; nil: there are no others
	// compiledThere hints to them that a compilation has ended.
	compiledThere func(id string)
	disk          *datadir.Disk // of the data directory
	usages        *usages
	log           logger
	metrics       *metrics
	store         *sql.Store
	blobs         content
	library       *code.Library
	sources       *source.Service
	trees         *worktree.Worktree
	ca            *pki.Authority
	listeners     atomic.Pointer[openListeners] // the listeners, from when they are open
	trust         checkin.Trust
	groups        *classify.Service
	places        checkin.Environments
	results       *checkin.Results
	wants         checkin.Wants
	checkin       checkin.Service
	members       target.Groups
	resolver      target.Resolver
	operator      operator
	cells         *cell.Keeper // that code is run in
	ruby          *ruby.Engines
	orders        compile.Orders
	dispatch      *compile.Dispatcher
	catalogs      *compile.Service
	packs         *compile.Packs
	warmer        *compile.Warmer
	deployedThere func(id string) // tells other servers that they have something to warm
	groupDoubts   *groupcheck.Service
	checks        *codecheck.Service
	reuser        *compile.Reuser
	verifier      *compile.Verifier
	factqueue     *factqueue.Service
	deliver       *deliver.Service
	wanter        *compile.Wanter
	hinter        *deliver.Hinter
	moduleHinter  *deliver.Hinter // tells nodes that their code may supply other modules of actions
	access        *rbac.Access
	audit         *rbac.Audit
	chain         *rbac.Chain
	bodies        *front.Budget
	jobs          *job.Service
	submits       submit.Service
	schedules     *schedule.Service
	departures    departures
	previews      *preview.Service
	judge         preview.Judge
	releases      *release.Service
	policies      *policy.Service
	events        *event.Service
	housekeeper   housekeeper
	register      *broker.Register // of agents that were connected
	calls         *call.Caller
	catalogue     *catalogue.Service
	modulesThere  *catalogue.Follower // nil: there are no other servers
	agents        agents
	others        *others        // brokers of other servers; nil: there are none
	broker        *broker.Broker // these two: see openBroker
	sockets       *websocket.Server

	near     *nearby // this server goes on without the records; nil: it does not
	leftover *nearby // the same, and also that of one that did so before

	recorder *trace.Recorder // of traces; nil: nobody wants them

	stopping  chan struct{}      // closed when the server begins to stop
	stopStore context.CancelFunc // the store serves the other parts from the first to the last
	stored    chan error         // how it ended
}

// open opens the parts in the order in which they need each other. What was
// opened before a failure is closed.
func open(ctx context.Context, c settings.Config, log logger) (p *parts, err error) {
	p = &parts{log: log, metrics: newMetrics(), bodies: front.NewBudget(c.BodyBudgetBytes), stopping: make(chan struct{}), drained: make(chan lease.Drain, 1)}
	p.config.Store(&c)
	p.agents = openAgents(p)
	defer func() { //nolint:contextcheck // ctx may be over, and the store is closed even so
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.data, err = datadir.Open(c.Data); err != nil {
		return p, err
	}
	p.disk = datadir.NewDisk(p.data.Path)
	if err = backup.CheckDataDir(p.data.Path); err != nil {
		return p, err
	}
	if p.id, err = p.data.ID(settings.ServerName()); err != nil {
		return p, err
	}
	if err = p.openStore(ctx, c); err != nil {
		return p, err
	}
	p.calls = call.New(sender{p.agents}, askID(p.id))
	openLeases(p, c)
	if err = openCluster(ctx, p, c); err != nil {
		return p, err
	}
	if err = openNear(p, c); err != nil {
		return p, err
	}
	if err = openBus(p, c); err != nil {
		return p, err
	}
	p.usages = &usages{path: p.data.Path, elsewhere: c.Database != "", disk: p.disk, tables: p.store.Usage, backups: p.store.Backups}
	elsewhere, err := connectedElsewhere(ctx, p.id, p.store.Leases, p.store.Presence)
	if err != nil {
		return p, err
	}
	if p.register, err = broker.OpenRegister(ctx, p.store.Attendances, elsewhere, log.Logger); err != nil {
		return p, err
	}
	if p.catalogue, err = openCatalogue(ctx, p); err != nil {
		return p, err
	}
	p.openAccess()
	if p.blobs, err = openContent(ctx, c, p.data, p.store.BlobMarks, log.Logger); err != nil {
		return p, err
	}
	p.library = code.NewLibrary(p.store.Versions, p.blobs)
	p.library.Share(p.relay)
	if p.trees, err = worktree.New(p.data.Join("trees"), p.library, p.blobs); err != nil {
		return p, err
	}
	if p.cells, err = openCells(ctx, c, p.data.Path, log.Logger); err != nil {
		return p, err
	}
	if p.operator, err = openOperator(p.data, p.cells, &p.config, log.Logger); err != nil {
		return p, err
	}
	if err = p.openCA(ctx, c); err != nil {
		return p, err
	}
	if err = openTraces(p, c); err != nil {
		return p, err
	}
	p.chain = rbac.NewChain(p.store.Audit, p.ca.Audit, p.log.Logger)
	if err = p.operator.checkTruster(c); err != nil {
		return p, err
	}
	if err = p.operator.checkNodeClassifier(c); err != nil {
		return p, err
	}
	p.openTrust()
	p.openDeliver() //nolint:contextcheck // its figures are asked for later
	p.openTargets()
	if err = p.openCompiler(c); err != nil {
		return p, err
	}
	p.openCheckin()
	if err = p.openFactQueue(ctx, c); err != nil {
		return p, err
	}
	if err = p.openHinter(); err != nil {
		return p, err
	}
	if err = p.openJobs(c); err != nil {
		return p, err
	}
	if err = p.openPreviews(); err != nil {
		return p, err
	}
	hearCompiled(p)
	p.openReleases()
	if err = openSources(ctx, p, c); err != nil {
		return p, err
	}
	p.metrics.factqueueFigures(p.factqueue)
	p.openEvents() //nolint:contextcheck // nodes are told later
	if err = joinNear(p, c); err != nil {
		return p, err
	}
	p.metrics.compileFigures(p.store.Queue, p.dispatch, p.catalogs, p.reuser) //nolint:contextcheck // they are asked for later
	p.metrics.aheadFigures(p.wanter)
	p.metrics.verifyFigures(p.verifier)
	p.housekeeper = housekeeper{
		store: p.store, events: p.events, library: p.library, trees: p.trees, usages: p.usages, departures: p.departures,
		config: &p.config, log: p.log.Logger,
	}
	return p, nil
}

// openAgents makes what asks these parts for agents that are connected, once they are open.
func openAgents(p *parts) agents {
	return agents{func() *broker.Broker { return p.broker }, func() *broker.Register { return p.register }, func() *others { return p.others }}
}

// openStore opens the store and starts it: the other parts write while they open.
func (p *parts) openStore(ctx context.Context, c settings.Config) (err error) {
	p.store, err = sql.Open(ctx, c.Records(p.data.Path), p.log.Logger)
	if err != nil {
		return atTerminal(err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stopStore, p.stored = stop, make(chan error, 1)
	go func() { p.stored <- p.store.Run(running) }()
	return p.store.Claim(ctx, sql.Claim{ID: p.id, Shared: c.Cluster})
}

// atTerminal adds the cause to what is said of a database that cannot be opened:
// who starts a server may know it, and has no log to look into.
func atTerminal(err error) error {
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Err != nil {
		return fault.Wrap(known.Kind, known.Err, "%s: %s", known.Detail, strings.Join(strings.Fields(known.Err.Error()), " "))
	}
	return err
}

func (p *parts) openCA(ctx context.Context, c settings.Config) error {
	autosign, err := p.operator.autosignPolicy(c)
	if err != nil {
		return err
	}
	names, err := c.OIDNames()
	if err != nil {
		return err
	}
	config := pki.Config{
		Dir: p.data.Join("ca"), KeyType: c.CAKeyType, CAName: c.CAName, LeafTTL: c.CertificateTTL, CRLTTL: c.CRLLifetime,
		AllowSubjectAltNames: c.AllowSubjectAltNames, AllowAuthorizationExtensions: c.AllowAuthorizationExtensions,
		RequestTTL: c.RequestTTL, MaxWaiting: c.MaxRequests, MaxWaitingOfOne: c.MaxRequestsPerAddress,
		AllowRenewal: c.AllowRenewal, Autosign: autosign, OIDNames: names,
	}
	if p.shared != nil {
		config.Shared = p.shared
	}
	p.ca, err = pki.Open(ctx, config, p.store.Authority, p.log.Logger)
	return err
}

// openTraces makes what tells a collector of steps.
func openTraces(p *parts, c settings.Config) error {
	bundle, _ := p.ca.Bundle()
	config, err := c.Trace(p.id, api.ProgramVersion(), pki.FingerprintOf(bundle))
	if err != nil {
		return err
	}
	p.recorder, err = trace.Open(config, p.log.Logger)
	return err
}

// openTrust makes what says who nodes are, and which groups they are in.
func (p *parts) openTrust() {
	p.trust = checkin.Trust{Authority: p.ca, External: p.operator.external}
	p.groups = classify.NewService(classify.ServiceParts{
		Store:   p.store.Groups,
		Known:   checkin.Known{Inventory: p.store.Facts, Trust: p.trust},
		Program: p.operator.nodeClassifier,
		Log:     p.log.Logger,
	})
}

// openCompiler wires the compile core to its neighbours.
func (p *parts) openCompiler(c settings.Config) (err error) {
	slots := c.CompileWorkers
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	chosen, err := c.PuppetSettings()
	if err != nil {
		return err
	}
	share, err := c.EnvironmentShare()
	if err != nil {
		return err
	}
	most := compile.Share(slots, share)
	limits := ruby.Config{
		// Those of deploys' checks are besides: a check of code that never ends takes no worker from catalogs.
		Workers: slots + most,
		Dir:     p.data.Join("ruby"), Timeout: c.CompileTimeout, MemoryBytes: c.CompileMemoryBytes, NoJIT: !c.CompileJIT,
		MaxOrderBytes: c.MaxFactsBytes + 1<<20, Settings: chosen,
		Keeper: p.cells, Hide: []string{p.data.Path},
	}
	if limits.Grants, limits.Granted, err = c.Grants(); err != nil {
		return err
	}
	engines, err := c.EnginesWith(append([]ruby.Engine{}, ruby.FindEngines()...))
	if err != nil {
		return err
	}
	p.ruby, err = ruby.NewEngines(limits, engines, p.engineOf, p.trees, checkin.Questions{Asker: p.store.Queries}, p.log.Logger)
	if err != nil {
		return err
	}
	orders := compile.Orders{
		Inputs:      asTold{p.store.Facts},
		Classifier:  checkin.Classes{Groups: p.groups},
		ServerFacts: p.serverFacts(),
		Trust:       checkin.Issued{Trust: p.trust},
	}
	p.orders = orders
	p.reuser = p.newReuser(orders)
	p.verifier = p.newVerifier(c, limits)
	limits.Workers = slots
	p.openChecks(p.ruby.NewChecker(limits), orders, most)
	reuser := p.reuser
	if !c.ReuseCatalogs {
		reuser = nil
	}
	settings := compile.DefaultDispatcher(p.id, slots)
	settings.Timeout = c.CompileTimeout + time.Minute // the compiler's own limit comes first, with a better word
	settings.Most, settings.Slice = most, c.CompileSlice
	p.dispatch, err = compile.NewDispatcher(compile.DispatcherParts{
		Queue:     p.store.Queue,
		Compiler:  p.ruby,
		Orders:    orders,
		Documents: documents{p.blobs},
		Finisher:  inliner{p.library},
		Results:   p.results,
		Gate:      loadGate{most: c.MaxLoad, idle: c.IdleLoad},
		Reuser:    reuser,
		Verifier:  p.verifier,
		History:   p.store.Queue,
		Turns:     p.store.Queue,
		Finished:  p.compiled,
		Now:       p.clock.Now,
		Relay:     p.relay,
		Log:       p.log.Logger,
	}, settings)
	if err != nil {
		return err
	}
	if err := p.newWanter(); err != nil {
		return err
	}
	service := compile.DefaultService()
	service.Patience = c.CompilePatience
	p.packs = compile.NewPacks(documents{p.blobs}, packedBytes)
	p.catalogs, err = compile.NewService(compile.ServiceParts{
		Queue:     p.store.Queue,
		Versions:  p.versions(),
		Documents: documents{p.blobs},
		Packs:     p.packs,
		Reuser:    reuser,
		Pauses:    p.store.Queue,
		Wake:      p.dispatch.Wake,
		Kept:      keptCatalogs{p.store.Deliveries}.of,
		Now:       p.clock.Now,
		Log:       p.log.Logger,
	}, service)
	if err != nil {
		return err
	}
	p.warmer, err = compile.NewWarmer(compile.WarmerParts{
		Compiler: p.ruby, History: p.store.Queue, Orders: orders, Environments: p.versions(), Log: p.log.Logger,
	}, compile.DefaultWarmer())
	p.deployedThere = p.relay.Join("deployed", func(string) { p.warmer.Heard() })
	return err
}

// versions is what compile asks of deployed code.
func (p *parts) versions() versions { return versions{p.library, p.store.Versions} }

// close closes what was opened, the last first.
func (p *parts) close() error {
	var err error
	p.recorder.Close()
	err = errors.Join(err, p.leftover.close())
	if p.bus != nil {
		err = errors.Join(err, p.bus.Close())
	}
	if p.blobs != nil {
		err = errors.Join(err, p.blobs.Close())
	}
	if p.store != nil {
		p.stopStore()
		err = errors.Join(err, <-p.stored, p.store.Close())
	}
	if p.data != nil {
		err = errors.Join(err, p.data.Close())
	}
	return err
}
