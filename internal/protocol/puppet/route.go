package puppet

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rate"
	"github.com/tutti-project/tutti/internal/rbac"
)

const (
	prefix = "/puppet/v3/"
	// maxQuery bounds a query; agents send a few hundred bytes.
	maxQuery = 64 << 10
	// maxFactsQuery bounds the query of a catalog GET, which may hold facts.
	maxFactsQuery = mebibyte
	// maxKey bounds the rest of a path: a file's longest possible path and a
	// checksum.
	maxKey = 8 << 10
)

// route is one kind of thing that agents ask for.
type route struct {
	methods map[string]handler
	gate    *gate
	self    bool // the key is a node's name: that of the caller
	noKey   bool // the route is used without a key, or with one of no meaning
	noEnv   bool // the environment parameter is not asked for, or checked later
	query   int  // bytes allowed in the query
	large   *budget
	rate    *rate.Rule // of each node; nil: none
}

type handler func(c *call) error

// table lists all routes. A HEAD of what can be read is answered like a GET,
// without the body.
func (s *server) table() map[string]route {
	get := func(h handler) map[string]handler {
		return map[string]handler{http.MethodGet: h, http.MethodHead: h}
	}
	put := func(h handler) map[string]handler { return map[string]handler{http.MethodPut: h} }
	facts, reports := newBudget(s.Limits), newBudget(s.Limits)
	content, kept := s.content(), s.backups()
	return map[string]route{
		"node": {methods: get(s.node), gate: s.catalogs, self: true},
		"catalog": {
			methods: map[string]handler{http.MethodGet: s.catalogGet, http.MethodPost: s.catalogPost},
			gate:    s.catalogs, self: true, noEnv: true, query: maxFactsQuery, large: facts, rate: s.FactsRate,
		},
		"facts":               {methods: put(s.factsPut), gate: s.catalogs, self: true, large: facts, rate: s.FactsRate},
		"report":              {methods: put(s.reportPut), gate: s.reports, self: true, large: reports, rate: s.ReportsRate},
		"file_metadata":       {methods: get(content.metadata), gate: s.files},
		"file_metadatas":      {methods: get(content.metadatas), gate: s.files},
		"file_content":        {methods: get(content.content), gate: s.files},
		"static_file_content": {methods: get(content.static), gate: s.files, noEnv: true},
		"file_bucket_file": {
			methods: map[string]handler{http.MethodGet: kept.get, http.MethodHead: kept.head, http.MethodPut: kept.put},
			gate:    s.files,
		},
		"environments": {methods: get(s.environments), gate: s.catalogs, noKey: true, noEnv: true},
		"status":       {methods: get(s.status), gate: s.catalogs, noKey: true, noEnv: true},
	}
}

func (s *server) content() *files {
	return &files{
		checkin: s.Checkin, trees: s.Trees, versions: s.Versions, blobs: blobs{s.Blobs, s.BodyTimeout},
		answers: newAnswerCache(cachedAnswers, cachedAnswerBytes), deployed: deployedVersions{known: map[deployment]struct{}{}},
	}
}

func (s *server) backups() *backups {
	return &backups{
		bucket: s.Bucket, blobs: blobs{s.Blobs, s.BodyTimeout}, rules: s.Backups, roles: s.Roles,
		uploads: newGate("uploads", s.Limits.Uploads, s.Limits), most: s.MaxBackupBytes, patience: s.BodyTimeout, now: s.Now,
	}
}

// call is one request on its way through the gates.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	route   string
	key     string // the rest of the path
	query   url.Values
	env     fleet.Environment // as asked for; empty on routes without
	node    fleet.Certname    // on routes of a node's own things
	actor   fleet.Actor
	started bool  // the answer's head is out
	inside  *gate // behind which a place is taken; nil before and after

	large    *budget // that the body shares; nil on routes without one in memory
	borrowed int64   // of it
}

// leave gives the place behind the gate back; again is no harm.
func (c *call) leave() {
	if c.inside != nil {
		c.inside.leave()
		c.inside = nil
	}
}

func (c *call) ctx() context.Context { return c.r.Context() }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{w: w, r: r, actor: fleet.ActorFrom(r.Context())}
	if version := s.PuppetVersion(); version != "" {
		w.Header()["X-Puppet-Version"] = []string{version} // its canonical name
	}
	if err := s.serve(c); err != nil { //nolint:contextcheck // the request carries its context
		s.fail(c, err) //nolint:contextcheck // the request carries its context
	}
}

// serve takes a call through the gates to its handler.
func (s *server) serve(c *call) error {
	if c.actor.Kind == fleet.Anonymous {
		return fault.New(fault.Denied, "%s needs a certificate of this fleet's CA; none was shown", c.r.URL.Path)
	}
	rest, found := strings.CutPrefix(c.r.URL.Path, prefix)
	if !found {
		return problemf(http.StatusNotFound, handlerNotFound, "No route for %s %s", c.r.Method, printable(c.r.URL.Path))
	}
	c.route, c.key, _ = strings.Cut(rest, "/")
	route, known := s.routes[c.route]
	if !known {
		return problemf(http.StatusNotFound, handlerNotFound, "Could not find indirection '%.80s'", printable(c.route))
	}
	c.large = route.large
	handle, err := route.method(c)
	if err != nil {
		return err
	}
	if err := s.allow(route, c); err != nil {
		return err
	}
	if err := route.parse(c); err != nil {
		return err
	}
	if err := route.rate.Allow(string(c.node), s.Now()); err != nil {
		return err
	}
	if err := route.gate.enter(c.ctx()); err != nil {
		return err
	}
	c.inside = route.gate
	defer c.leave()
	defer c.giveBack()
	return handle(c)
}

// method picks the handler for the request's method.
func (r route) method(c *call) (handler, error) {
	if h, ok := r.methods[c.r.Method]; ok {
		return h, nil
	}
	var allowed []string
	for method := range r.methods {
		allowed = append(allowed, method)
	}
	slices.Sort(allowed)
	c.w.Header().Set("Allow", strings.Join(allowed, ", "))
	return nil, problemf(http.StatusMethodNotAllowed, unsupportedMethod,
		"No support for http method %.20s on %s", printable(c.r.Method), c.route)
}

// allow lets nodes pass, and on a node's own routes only the node itself and who
// may act for it.
func (s *server) allow(r route, c *call) error {
	if !r.self {
		if c.actor.Kind == fleet.NodeActor || rbac.Allow(c.actor, fleet.NodeAct, fleet.Object{}) == nil {
			return nil
		}
		return fault.New(fault.Denied, "%s %s is no node of this fleet", c.actor.Kind, c.actor.Name)
	}
	if c.key == "" {
		return noKey(c)
	}
	node, err := fleet.ParseCertname(c.key)
	if err != nil {
		return err
	}
	c.node = node
	if refusal := rbac.AllowSelf(c.actor, node); refusal == nil || s.Roles == nil {
		return refusal
	}
	// Roles are asked for only now: nodes that act for themselves need none.
	if c.actor, err = s.Roles(c.ctx(), c.actor); err != nil {
		return err
	}
	return rbac.AllowSelf(c.actor, node)
}

// parse reads the query and checks the key and environment.
func (r route) parse(c *call) error {
	limit := max(r.query, maxQuery)
	if n := len(c.r.URL.RawQuery); n > limit {
		return problemf(http.StatusRequestURITooLong, runtimeError, "the query has %d bytes, at most %d are allowed", n, limit)
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return badRequest("the query is not well formed: %s", printable(err.Error()))
	}
	c.query = query
	if !r.noEnv {
		if err := c.setEnvironment(query.Get("environment")); err != nil {
			return err
		}
	}
	if r.noKey {
		return nil
	}
	return checkKey(c)
}

// setEnvironment checks the environment's name; whether it exists is seen later.
func (c *call) setEnvironment(name string) error {
	if name == "" {
		return badRequest("An environment parameter must be specified")
	}
	env, err := fleet.ParseEnvironment(name)
	if err != nil {
		return badRequest("The environment must be purely alphanumeric, not '%.80s'", printable(name))
	}
	c.env = env
	return nil
}

func (c *call) noEnvironment() error {
	return problemf(http.StatusNotFound, runtimeError, "Could not find environment '%s'", c.env)
}

func noKey(c *call) error {
	return badRequest("No request key specified in %s", printable(c.r.URL.Path))
}

// checkKey refuses what no honest client sends: keys that could lead a path
// elsewhere.
func checkKey(c *call) error {
	switch {
	case c.key == "":
		return noKey(c)
	case len(c.key) > maxKey:
		return problemf(http.StatusRequestURITooLong, runtimeError, "the path has %d bytes, at most %d are allowed", len(c.key), maxKey)
	case strings.ContainsRune(c.key, 0):
		return badRequest("the path holds a NUL byte")
	case climbs(c.key):
		return badRequest("the path '%s' holds '..'", printable(c.key))
	}
	return nil
}

func climbs(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if name == ".." {
			return true
		}
	}
	return false
}

// readDeadline bounds the wait for (the next piece of) the body. Connections
// that cannot do that have their own bounds.
func (c *call) readDeadline(d time.Duration) {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(d))
}
