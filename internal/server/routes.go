package server

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/action/invoke"
	"github.com/tutti-project/tutti/internal/action/supply"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory/saved"
	classifierapi "github.com/tutti-project/tutti/internal/protocol/classifier"
	codemanagerapi "github.com/tutti-project/tutti/internal/protocol/codemanager"
	"github.com/tutti-project/tutti/internal/protocol/front"
	"github.com/tutti-project/tutti/internal/protocol/node"
	orchestratorapi "github.com/tutti-project/tutti/internal/protocol/orchestrator"
	puppetapi "github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/protocol/puppetca"
	"github.com/tutti-project/tutti/internal/protocol/puppetdb"
	"github.com/tutti-project/tutti/internal/protocol/rbacapi"
	"github.com/tutti-project/tutti/internal/protocol/rest"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/target"
)

// routes serves the table.
func (p *parts) routes(h *health) (http.Handler, error) {
	agents, others, err := p.table(h)
	if err != nil {
		return nil, err
	}
	if !p.config.Load().Front() {
		agents, others = front.Prefixes{}, backstage(others)
	}
	mux := http.NewServeMux()
	for pattern, handler := range others {
		mux.Handle(pattern, handler)
	}
	return agents.Before(mux), nil
}

// table is the whole machine: what answers where, and how large a body it takes. Who asks is
// known before (protocol/tls); what they may do is each handler's first question.
func (p *parts) table(h *health) (agents front.Prefixes, others map[string]front.Route, err error) {
	c, now := p.config.Load(), current{&p.config}
	nodes := p.knownNodes()
	own, err := rest.New(rest.Config{
		Certificates: certificates{p.ca, &p.listeners, &p.config}, CertificateEnds: p.store.Authority, Requests: p.ca.Requests,
		Code:      p.deployments(),
		Sources:   p.sources,
		Engines:   engineStandings{p.ruby},
		Blobs:     p.blobs,
		Nodes:     nodes,
		Presences: presences{p.agents},
		Asker:     asking{p.calls, presences{p.agents}},
		Catalogue: p.catalogue,
		Invoker: invoke.Service{
			Catalogue: p.catalogue, Resolver: p.resolver, Gate: gateOver(p.store), Asker: p.calls, Now: time.Now,
			Recorder: history.Keeper{Store: p.store.Calls, Log: p.log.Logger},
		},
		Calls:      p.store.Calls,
		Judges:     p.resolver,
		Targets:    p.resolver,
		Lookups:    checkin.Lookups{Environments: p.places, Orders: p.orders, Looker: p.ruby},
		Runs:       p.store.Reports,
		Breakages:  p.store.Queue,
		Facts:      p.store.Facts,
		Catalogs:   p.store.Catalogs,
		Inputs:     p.catalogInputs(),
		Deliveries: deliveries{p.deliver, p.store.Deliveries}, Losses: p.deliver, CatalogReleases: p.catalogReleases(),
		CatalogChanges: catalogChanges{p.previews.Comparing},
		Reports:        p.store.Reports,
		Events:         p.events,
		Inventory:      p.store.Queries,
		SavedQueries:   saved.Service{Store: p.store.SavedQueries},
		Groups:         p.store.Groups,
		Classifier:     p.groups,
		GroupDoubts:    p.groupDoubts,
		Tasks:          codeTasks{p.library, p.blobs},
		Jobs:           p.jobs, JobOrders: p.jobs,
		JobFiles: p.store.Jobs,
		Previews: p.previews, PreviewOrders: p.previews, Noise: p.previews,
		Applications: appgraph.Service{Store: p.store.Catalogs},
		Releases:     p.releases.Records, ReleasePlanner: p.releases.Planner, ReleaseControl: p.releases.Control,
		ReleaseDifferences: releaseDifferences{p.previews},
		Policies:           p.policies,
		PreviewJudge:       p.judge,
		Compilations:       p.store.Queue,
		CompilePauses:      compilePauses{p.store.Queue, p.wants.Wake},
		CompileTurns:       p.store.Queue,
		Wanting:            p.wants,
		Verifying:          p.verifications(),
		Usages:             p.usages,
		Cluster:            members{p.store.Leases, p.id, p.bus},
		SetAside:           p.leftover.setAside(),
		Access:             p.access,
		Audit:              p.audit,
		AuditLog:           p.store.Audit,
		AuditChain:         p.chain,
		AuditReads:         func() bool { return p.config.Load().AuditReads },
		Scopes:             target.Scopes{Inventory: p.store.Queries},
		Console:            func() string { return consoleAt(&p.listeners) },
		Entry:              front.Entry,
		RequestID:          front.RequestID,
		NoteActor:          front.NoteActor,
		Streams:            front.Streams,
		Stopping:           p.stopping,
		Log:                p.log.Logger,
	})
	if err != nil {
		return nil, nil, err
	}
	factsRate := factsRate(c) // one, however they come
	puppet := puppetapi.New(puppetapi.Config{
		Checkin:        p.near.checkin(p.checkin),
		Places:         p.near.places(p.places),
		Environments:   environments{p.library, p.store.Versions},
		Trees:          p.library,
		Versions:       p.near.versions(p.store.Versions),
		Blobs:          p.blobs,
		Reports:        heardReports{p.near.reports(p.store.Reports), p.events},
		Bucket:         p.store.Backups,
		Roles:          p.near.roles(p.access.Certificate),
		Backups:        now.backupRules,
		FactsRate:      factsRate,
		ReportsRate:    reportsRate(c),
		PuppetVersion:  p.ruby.DefaultPuppet,
		CompilerName:   settings.ServerName(),
		MaxFactsBytes:  c.MaxFactsBytes,
		MaxReportBytes: c.MaxReportBytes,
		MaxBackupBytes: c.MaxBackupBytes,
		Log:            p.log.Logger,
	})
	pdb := puppetdb.New(puppetdb.Config{
		Asker: p.store.Queries, Store: commands{p.store.Facts, p.store.Catalogs, p.store.Nodes, p.store.Reports},
		Keeper: keeper{p.housekeeper, nodes}, Now: time.Now, Log: p.log.Logger,
		MaxFactsBytes: c.MaxFactsBytes, MaxCatalogBytes: maxReceivedCatalog, MaxReportBytes: c.MaxReportBytes,
	})
	classifier := classifierapi.New(classifierapi.Config{
		Groups:    p.store.Groups,
		Fleet:     classifiedFleet{p.members, p.groups, p.store.Versions},
		Actor:     own.Actor,
		Audit:     p.audit,
		Entry:     front.Entry,
		RequestID: front.RequestID,
		Log:       p.log.Logger,
	})
	codeManager := codemanagerapi.New(codemanagerapi.Config{
		Sources: p.sources, Actor: own.Actor, Audit: p.audit, Entry: front.Entry, RequestID: front.RequestID, Log: p.log.Logger,
	})
	people := rbacapi.New(rbacapi.Config{
		Access: p.access, Audit: p.audit, Actor: own.Actor, Entry: front.Entry, RequestID: front.RequestID, Log: p.log.Logger,
	})
	ca := puppetca.New(puppetca.Config{Authority: p.ca, Renewals: renewalRate(c), Audit: p.audit, Entry: front.Entry, Log: p.log.Logger})

	orchestration := front.Route{Handler: orchestration(p, own), Bytes: orchestratorapi.MaxBodyBytes + front.PieceBytes, Drained: true}
	asked := front.Bodiless(puppet)
	facts := front.Route{Handler: puppet, Bytes: puppetapi.CatalogRequestBytes(c.MaxFactsBytes), Drained: true}
	channel := front.Bodiless(p.sockets)
	agents = front.Prefixes{ // Puppet's protocol, as stock agents speak it
		"/puppet/v3/catalog/":             facts,
		"/puppet/v3/node/":                asked,
		"/puppet/v3/facts/":               facts,
		"/puppet/v3/report/":              {Handler: puppet, Bytes: c.MaxReportBytes, Drained: true},
		"/puppet/v3/file_metadata/":       asked,
		"/puppet/v3/file_metadatas/":      asked,
		"/puppet/v3/file_content/":        asked,
		"/puppet/v3/static_file_content/": asked,
		"/puppet/v3/file_bucket_file/":    {Handler: puppet, Bytes: c.MaxBackupBytes, Streamed: true, Drained: true},
		"/puppet/v3/environments":         asked,
		"/puppet/v3/status/":              asked,
		"/puppet/":                        asked, // what there is not
	}
	agents["/orchestrator/"] = orchestration                                      // the paths of clients that mean JSON: a mux answers unclean ones by itself
	agents[websocket.PathV1+"/"], agents[websocket.PathV2+"/"] = channel, channel // a client type may follow
	questions := front.Route{Handler: now.puppetDBClients(own.Require(fleet.QueryRun, pdb)), Bytes: maxSmallBody}
	others = map[string]front.Route{
		// The CA, for stock agents and for clients of `puppetserver ca`.
		"/puppet-ca/v1/": {Handler: own.Identify(ca), Bytes: puppetca.MaxBodyBytes},

		// The channel to agents: PCP 1 and 2 over websockets.
		websocket.PathV1: channel,
		websocket.PathV2: channel,

		// What nodes may have (catalogs, modules of actions), and their facts apart from their runs, for tutti agent.
		node.Prefix + "/": {Handler: node.New(node.Config{
			Deliveries: p.near.deliveries(p.deliver), Modules: supply.Service{Places: p.places, Trees: p.library}, Blobs: p.near.blobs(p.blobs),
			Facts: p.near.submissions(p.factqueue), FactsRate: factsRate, MaxFactsBytes: c.MaxFactsBytes, RequestID: front.RequestID, Log: p.log.Logger,
		}), Bytes: c.MaxFactsBytes, Drained: true},

		// The files of jobs, for the nodes that they send them to.
		rest.JobFilePath: front.Bodiless(own.JobFileRoute()),

		// What PuppetDB answers and takes.
		"/pdb/query/v4":  questions,
		"/pdb/query/v4/": questions,
		"/pdb/meta/v1/":  questions,
		"/metrics/v2/":   questions,
		"/pdb/cmd/v1": {
			Handler: now.puppetDBClients(own.Require(fleet.InventoryWrite, pdb)),
			Bytes:   max(c.MaxFactsBytes, maxReceivedCatalog, c.MaxReportBytes), Drained: true,
		},
		"/pdb/admin/v1/": {Handler: own.Perform(fleet.NodePurge, pdb), Bytes: maxSmallBody},
		"/pdb/":          questions, // what there is not

		// Groups, as clients of Puppet Enterprise's classifier manage them.
		classifierapi.Prefix + "/": {Handler: classifier, Bytes: classifierapi.MaxBodyBytes},

		// Deploys from git, as clients of Puppet Enterprise's Code Manager and git servers ask for them.
		"/code-manager/": {Handler: codeManager, Bytes: codemanagerapi.MaxBodyBytes, Strangers: codemanagerapi.MaxBodyBytes},

		// Logins, tokens, users and roles, as clients of Puppet Enterprise ask for them.
		rbacapi.Prefix + "/": {Handler: people, Bytes: rbacapi.MaxBodyBytes},

		// What clients of Puppet Enterprise ask for and is not here: they read errors as JSON.
		"/activity-api/": front.Bodiless(notServed("puppetlabs.activity")),

		// Tutti's own API; its operations are the table api.Operations, with bounds of their own.
		api.Prefix + "/": {Handler: own, Bytes: api.MaxUpload},

		// Health, open to all, and figures for monitoring.
		"GET /status/v1/live":          front.Bodiless(http.HandlerFunc(h.live)),
		"GET /status/v1/simple":        front.Bodiless(http.HandlerFunc(h.simple)),
		"GET /status/v1/simple/{name}": front.Bodiless(http.HandlerFunc(h.simple)),
		"GET /status/v1/services":      front.Bodiless(http.HandlerFunc(h.all)),
		"/status/v1/services/{name}":   front.Bodiless(http.HandlerFunc(h.one)),
		"GET /status/v1/services/" + puppetDBStatus: front.Bodiless(
			now.puppetDBClients(own.Require(fleet.QueryRun, http.HandlerFunc(h.puppetDB))),
		),
		"GET /metrics": front.Bodiless(own.Require(fleet.MetricsRead, p.metrics.handler())),

		// Everything else: whoever finds this server at a port of Puppet Enterprise reads errors as JSON.
		"/": front.Bodiless(notServed("tutti")),
	}
	return agents, others, sourcesWhereTheyAre(p, others, own.Actor)
}

// maxSmallBody is more than any question to PuppetDB's API may have, in bytes.
const maxSmallBody = 4 << 20

// maxReceivedCatalog is the largest catalog that another server may send, in bytes.
const maxReceivedCatalog = 64 << 20
