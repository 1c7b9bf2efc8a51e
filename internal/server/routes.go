package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/action/invoke"
	"github.com/tutti-project/tutti/internal/action/supply"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/fleet"
	classifierapi "github.com/tutti-project/tutti/internal/protocol/classifier"
	codemanagerapi "github.com/tutti-project/tutti/internal/protocol/codemanager"
	"github.com/tutti-project/tutti/internal/protocol/node"
	orchestratorapi "github.com/tutti-project/tutti/internal/protocol/orchestrator"
	puppetapi "github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/protocol/puppetca"
	"github.com/tutti-project/tutti/internal/protocol/puppetdb"
	"github.com/tutti-project/tutti/internal/protocol/rbacapi"
	"github.com/tutti-project/tutti/internal/protocol/rest"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/target"
)

// routes serves the table.
func (p *parts) routes(h *health) (http.Handler, error) {
	agents, others, err := p.table(h)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, handler := range others {
		mux.Handle(pattern, handler)
	}
	return agents.before(mux), nil
}

// table is the whole machine: what answers where, and how large a body it takes. Who asks is
// known before (protocol/tls); what they may do is each handler's first question.
func (p *parts) table(h *health) (agents prefixes, others map[string]route, err error) {
	c, settings := p.config.Load(), current{&p.config}
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
		Cluster:            members{p.store.Leases, p.id},
		Access:             p.access,
		Audit:              p.audit,
		AuditLog:           p.store.Audit,
		AuditChain:         p.chain,
		AuditReads:         func() bool { return p.config.Load().AuditReads },
		Scopes:             target.Scopes{Inventory: p.store.Queries},
		Console:            func() string { return consoleAt(&p.listeners) },
		Entry:              entryOf,
		RequestID:          requestID,
		NoteActor:          noteActor,
		Streams:            streams,
		Stopping:           p.stopping,
		Log:                p.log.Logger,
	})
	if err != nil {
		return nil, nil, err
	}
	factsRate := factsRate(c) // one, however they come
	puppet := puppetapi.New(puppetapi.Config{
		Checkin:        p.checkin,
		Places:         p.places,
		Environments:   environments{p.library, p.store.Versions},
		Trees:          p.library,
		Versions:       p.store.Versions,
		Blobs:          p.blobs,
		Reports:        heardReports{p.store.Reports, p.events},
		Bucket:         p.store.Backups,
		Roles:          p.access.Certificate,
		Backups:        settings.backupRules,
		FactsRate:      factsRate,
		ReportsRate:    reportsRate(c),
		PuppetVersion:  p.ruby.DefaultPuppet,
		CompilerName:   serverName(),
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
		Entry:     entryOf,
		RequestID: requestID,
		Log:       p.log.Logger,
	})
	codeManager := codemanagerapi.New(codemanagerapi.Config{
		Sources: p.sources, Actor: own.Actor, Audit: p.audit, Entry: entryOf, RequestID: requestID, Log: p.log.Logger,
	})
	people := rbacapi.New(rbacapi.Config{
		Access: p.access, Audit: p.audit, Actor: own.Actor, Entry: entryOf, RequestID: requestID, Log: p.log.Logger,
	})
	ca := puppetca.New(puppetca.Config{Authority: p.ca, Renewals: renewalRate(c), Audit: p.audit, Entry: entryOf, Log: p.log.Logger})

	orchestration := route{Handler: orchestration(p, own), bytes: orchestratorapi.MaxBodyBytes + pieceBytes, drained: true}
	asked := bodiless(puppet)
	facts := route{Handler: puppet, bytes: puppetapi.CatalogRequestBytes(c.MaxFactsBytes), drained: true}
	channel := bodiless(p.sockets)
	agents = prefixes{ // Puppet's protocol, as stock agents speak it
		"/puppet/v3/catalog/":             facts,
		"/puppet/v3/node/":                asked,
		"/puppet/v3/facts/":               facts,
		"/puppet/v3/report/":              {Handler: puppet, bytes: c.MaxReportBytes, drained: true},
		"/puppet/v3/file_metadata/":       asked,
		"/puppet/v3/file_metadatas/":      asked,
		"/puppet/v3/file_content/":        asked,
		"/puppet/v3/static_file_content/": asked,
		"/puppet/v3/file_bucket_file/":    {Handler: puppet, bytes: c.MaxBackupBytes, streamed: true, drained: true},
		"/puppet/v3/environments":         asked,
		"/puppet/v3/status/":              asked,
		"/puppet/":                        asked, // what there is not
	}
	agents["/orchestrator/"] = orchestration                                      // the paths of clients that mean JSON: a mux answers unclean ones by itself
	agents[websocket.PathV1+"/"], agents[websocket.PathV2+"/"] = channel, channel // a client type may follow
	questions := route{Handler: settings.puppetDBClients(own.Require(fleet.QueryRun, pdb)), bytes: maxSmallBody}
	others = map[string]route{
		// The CA, for stock agents and for clients of `puppetserver ca`.
		"/puppet-ca/v1/": {Handler: own.Identify(ca), bytes: puppetca.MaxBodyBytes},

		// The channel to agents: PCP 1 and 2 over websockets.
		websocket.PathV1: channel,
		websocket.PathV2: channel,

		// What nodes may have (catalogs, modules of actions), and their facts apart from their runs, for tutti agent.
		node.Prefix + "/": {Handler: node.New(node.Config{
			Deliveries: p.deliver, Modules: supply.Service{Places: p.places, Trees: p.library}, Blobs: p.blobs, Facts: p.factqueue, FactsRate: factsRate, MaxFactsBytes: c.MaxFactsBytes,
			RequestID: requestID, Log: p.log.Logger,
		}), bytes: c.MaxFactsBytes, drained: true},

		// The files of jobs, for the nodes that they send them to.
		rest.JobFilePath: bodiless(own.JobFileRoute()),

		// What PuppetDB answers and takes.
		"/pdb/query/v4":  questions,
		"/pdb/query/v4/": questions,
		"/pdb/meta/v1/":  questions,
		"/metrics/v2/":   questions,
		"/pdb/cmd/v1": {
			Handler: settings.puppetDBClients(own.Require(fleet.InventoryWrite, pdb)),
			bytes:   max(c.MaxFactsBytes, maxReceivedCatalog, c.MaxReportBytes), drained: true,
		},
		"/pdb/admin/v1/": {Handler: own.Perform(fleet.NodePurge, pdb), bytes: maxSmallBody},
		"/pdb/":          questions, // what there is not

		// Groups, as clients of Puppet Enterprise's classifier manage them.
		classifierapi.Prefix + "/": {Handler: classifier, bytes: classifierapi.MaxBodyBytes},

		// Deploys from git, as clients of Puppet Enterprise's Code Manager and git servers ask for them.
		"/code-manager/": {Handler: codeManager, bytes: codemanagerapi.MaxBodyBytes, strangers: codemanagerapi.MaxBodyBytes},

		// Logins, tokens, users and roles, as clients of Puppet Enterprise ask for them.
		rbacapi.Prefix + "/": {Handler: people, bytes: rbacapi.MaxBodyBytes},

		// What clients of Puppet Enterprise ask for and is not here: they read errors as JSON.
		"/activity-api/": bodiless(notServed("puppetlabs.activity")),

		// Tutti's own API; its operations are the table api.Operations, with bounds of their own.
		api.Prefix + "/": {Handler: own, bytes: api.MaxUpload},

		// Health, open to all, and figures for monitoring.
		"GET /status/v1/simple":        bodiless(http.HandlerFunc(h.simple)),
		"GET /status/v1/simple/{name}": bodiless(http.HandlerFunc(h.simple)),
		"GET /status/v1/services":      bodiless(http.HandlerFunc(h.all)),
		"/status/v1/services/{name}":   bodiless(http.HandlerFunc(h.one)),
		"GET /status/v1/services/" + puppetDBStatus: bodiless(
			settings.puppetDBClients(own.Require(fleet.QueryRun, http.HandlerFunc(h.puppetDB))),
		),
		"GET /metrics": bodiless(own.Require(fleet.MetricsRead, p.metrics.handler())),
	}
	return agents, others, nil
}

// maxSmallBody is more than any question to PuppetDB's API may have, in bytes.
const maxSmallBody = 4 << 20

// maxReceivedCatalog is the largest catalog that another server may send, in bytes.
const maxReceivedCatalog = 64 << 20

// prefixes is handlers by the beginning of the path, as it was sent: a ServeMux
// cleans paths, but agents name backups by //etc/motd and mean it.
type prefixes map[string]route

// before answers what begins with one of the prefixes, the longest one, and
// leaves the rest to next.
func (p prefixes) before(next http.Handler) http.Handler {
	ways := make([]way, 0, len(p)+1)
	for prefix, handler := range p {
		ways = append(ways, way{prefix, handler})
	}
	slices.SortFunc(ways, func(a, b way) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	ways = append(ways, way{"", next})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(ways, func(way way) bool { return strings.HasPrefix(r.URL.Path, way.prefix) })
		r.Pattern = ways[i].prefix // a mux sets its own
		ways[i].handler.ServeHTTP(w, r)
	})
}

type way struct {
	prefix  string
	handler http.Handler
}
