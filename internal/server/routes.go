package server

import (
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/caapi"
	"github.com/tutti-project/tutti/internal/httpapi"
	"github.com/tutti-project/tutti/internal/puppetapi"
)

// routes is the whole machine in one table: what answers where. Who asks is
// known before (tlsfront); what they may do is each handler's first question.
func (p *parts) routes(h *health) (http.Handler, error) {
	c := p.config.Load()
	own, err := httpapi.New(httpapi.Config{
		Certificates: p.ca, Code: codeDoor{p}, Blobs: p.blobs, Nodes: p.store, Facts: p.store, Catalogs: p.store, Reports: p.store,
		Groups: p.store, Explainer: p.groups, Tokens: p.store, RequestID: requestID, Log: p.log.Logger,
	})
	if err != nil {
		return nil, err
	}
	puppet := puppetapi.New(puppetapi.Config{
		Catalogs: agentDoor{p}, Environments: agentDoor{p}, Trees: p.library, Versions: p.store, Trust: agentDoor{p},
		Blobs: p.blobs, Facts: p.store, Reports: p.store, Bucket: p.store,
		PuppetVersion: puppetVersion, CompilerName: serverName(),
		MaxFactsBytes: c.MaxFactsBytes, MaxReportBytes: c.MaxReportBytes, MaxBackupBytes: c.MaxBackupBytes, Log: p.log.Logger,
	})
	ca := caapi.New(caapi.Config{Authority: p.ca, Log: p.log.Logger})

	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.Handler{
		// Puppet's own protocols, as stock agents speak them.
		"/puppet-ca/v1/":                  ca,
		"/puppet/v3/catalog/":             puppet,
		"/puppet/v3/node/":                puppet,
		"/puppet/v3/facts/":               puppet,
		"/puppet/v3/report/":              puppet,
		"/puppet/v3/file_metadata/":       puppet,
		"/puppet/v3/file_metadatas/":      puppet,
		"/puppet/v3/file_content/":        puppet,
		"/puppet/v3/static_file_content/": puppet,
		"/puppet/v3/file_bucket_file/":    puppet,
		"/puppet/":                        puppet, // the rest, and what there is not

		// Tutti's own API; its operations are the table api.Operations.
		api.Prefix + "/": own,

		// Health, open to all, and figures for monitoring.
		"GET /status/v1/simple":        http.HandlerFunc(h.simple),
		"GET /status/v1/simple/{name}": http.HandlerFunc(h.simple),
		"GET /status/v1/services":      http.HandlerFunc(h.all),
		"GET /metrics":                 own.AdminOnly(p.metrics.handler()),
	} {
		mux.Handle(pattern, handler)
	}
	return paths{"/puppet/", puppet, mux}, nil
}

// paths sends everything below a prefix to one handler before the mux sees it: a
// mux cleans paths, but agents name backups by //etc/motd and mean it.
type paths struct {
	prefix string
	raw    http.Handler
	rest   http.Handler
}

func (p paths) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, p.prefix) {
		r.Pattern = p.prefix
		p.raw.ServeHTTP(w, r)
		return
	}
	p.rest.ServeHTTP(w, r)
}
