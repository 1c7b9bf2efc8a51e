package orchestrator

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/submit"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

// common is what orders of both kinds have.
type common struct {
	Description *string         `json:"description"`
	Concurrency *int            `json:"concurrency"`
	Timeout     *int64          `json:"timeout"` // seconds, of each node
	Userdata    json.RawMessage `json:"userdata"`
	Scope       json.RawMessage `json:"scope"`
}

// fill puts it into a spec.
func (h *orders) fill(c common, s *job.Spec) error {
	if c.Description != nil {
		s.Description = *c.Description
	}
	if c.Concurrency != nil {
		if s.Concurrency = *c.Concurrency; s.Concurrency < 1 {
			return h.invalid("concurrency", "it is 1 or more; leave it out for no limit")
		}
	}
	if c.Timeout != nil {
		if *c.Timeout < 1 || *c.Timeout > int64(job.MaxTime/time.Second) {
			return h.invalid("timeout", "it is a number of seconds, 1 to %d", int64(job.MaxTime/time.Second))
		}
		s.Timeout = time.Duration(*c.Timeout) * time.Second
	}
	if !isNull(c.Userdata) && string(c.Userdata) != "{}" {
		s.Userdata = c.Userdata
	}
	return nil
}

// deployBody is what deploy is sent. Clients send null for what they do not say.
type deployBody struct {
	common
	Environment          *string     `json:"environment"`
	Target               string      `json:"target"`
	Enforce              *bool       `json:"enforce_environment"`
	Noop                 bool        `json:"noop"`
	NoNoop               bool        `json:"no_noop"`
	Debug                bool        `json:"debug"`
	Trace                bool        `json:"trace"`
	Evaltrace            bool        `json:"evaltrace"`
	Tags                 pejson.List `json:"tags"`
	SkipTags             pejson.List `json:"skip_tags"`
	Ordering             string      `json:"ordering"`
	FileTimeout          *int        `json:"filetimeout"`
	HTTPConnectTimeout   *int        `json:"http_connect_timeout"`
	HTTPKeepaliveTimeout *int        `json:"http_keepalive_timeout"`
	HTTPReadTimeout      *int        `json:"http_read_timeout"`
	UseCachedCatalog     *bool       `json:"use_cached_catalog"`
	UseCacheOnFailure    *bool       `json:"usecacheonfailure"`
}

// puppet is the run that it asks for.
func (b deployBody) puppet() *job.PuppetSpec {
	p := &job.PuppetSpec{
		Noop: b.Noop, NoNoop: b.NoNoop, Debug: b.Debug, Trace: b.Trace, Evaltrace: b.Evaltrace, Tags: b.Tags, SkipTags: b.SkipTags,
		Ordering: b.Ordering, FileTimeout: b.FileTimeout, HTTPConnectTimeout: b.HTTPConnectTimeout,
		HTTPKeepaliveTimeout: b.HTTPKeepaliveTimeout, HTTPReadTimeout: b.HTTPReadTimeout, UseCacheOnFailure: b.UseCacheOnFailure,
	}
	if b.UseCachedCatalog != nil {
		p.UseCachedCatalog, p.NoCachedCatalog = *b.UseCachedCatalog, !*b.UseCachedCatalog
	}
	return p
}

// deployOrder is the order that a body asks for.
func (h *orders) deployOrder(b deployBody) (o submit.Order, err error) {
	if b.Environment == nil {
		return o, h.invalid("environment", "it is missing; give the name of an environment, or \"\" with a scope and enforce_environment false")
	}
	enforce := b.Enforce == nil || *b.Enforce
	s, err := h.scopeOf(b.Scope)
	if err != nil {
		return o, err
	}
	env := fleet.Environment(*b.Environment)
	if env == "" {
		if enforce || s.none || s.whole {
			return o, h.invalid("environment", "without one, a scope is needed and enforce_environment must be false")
		}
	} else if _, err := fleet.ParseEnvironment(*b.Environment); err != nil {
		return o, h.invalid("environment", "%s", fault.Detail(err))
	}
	o.Spec = job.Spec{Kind: job.Puppet, Puppet: b.puppet(), Targets: s.targets}
	if b.Target != "" && s.none { // as clients of the first version name an application
		o.Spec.Targets.App, s.none = b.Target, false
	}
	if s.none || s.whole {
		o.Whole = env
	}
	o.Spec.Ordered = o.Spec.Targets.App != ""
	if enforce {
		o.Spec.Environment = env
	}
	return o, h.fill(b.common, &o.Spec)
}

// deploy runs Puppet.
func (h *orders) deploy(w http.ResponseWriter, r *http.Request) error {
	var body deployBody
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	o, err := h.deployOrder(body)
	if err != nil {
		return err
	}
	return h.start(w, r, o)
}

// start makes a job of an order and says its number.
func (h *orders) start(w http.ResponseWriter, r *http.Request, o submit.Order) error {
	created, err := h.Orders.Submit(r.Context(), fleet.ActorFrom(r.Context()), o)
	if err != nil {
		return h.refused(err, o)
	}
	pejson.Write(w, http.StatusAccepted, map[string]named{"job": linksOf(r).numbered("jobs", created.ID)})
	return nil
}

// taskBody is what task is sent, and plan_task.
type taskBody struct {
	common
	Environment *string           `json:"environment"`
	Task        string            `json:"task"`
	Params      json.RawMessage   `json:"params"`
	Targets     []json.RawMessage `json:"targets"`
	Noop        bool              `json:"noop"` // null is false
	Plan        pejson.Text       `json:"plan_job"`
}

// defaultEnvironment is whose code a task is taken from when nobody says.
const defaultEnvironment = "production"

// taskOrder is the order that a body asks for.
func (h *orders) taskOrder(b taskBody) (o submit.Order, err error) {
	name := defaultEnvironment
	if b.Environment != nil && *b.Environment != "" {
		name = *b.Environment
	}
	env, err := fleet.ParseEnvironment(name)
	if err != nil {
		return o, h.invalid("environment", "%s", fault.Detail(err))
	}
	var params map[string]json.RawMessage
	switch {
	case b.Task == "":
		return o, h.invalid("task", "it is missing; give the name of a task")
	case json.Unmarshal(b.Params, &params) != nil || params == nil:
		return o, h.invalid("params", "it is an object, {} for none")
	case len(b.Targets) > 0:
		return o, h.invalid("targets", "targets without an agent (SSH, WinRM) are not served; leave it out, or give []")
	}
	s, err := h.scopeOf(b.Scope)
	switch {
	case err != nil:
		return o, err
	case s.none || s.whole || s.targets.App != "":
		return o, h.invalid("scope", "a task needs nodes, query or node_group")
	}
	o = submit.Order{
		Spec: job.Spec{Kind: job.Task, Environment: env, Targets: s.targets},
		Task: &submit.Task{Name: b.Task, Params: b.Params, Noop: b.Noop}, Skip: true,
	}
	return o, h.fill(b.common, &o.Spec)
}

// task runs a task.
func (h *orders) task(w http.ResponseWriter, r *http.Request) error {
	var body taskBody
	if err := h.read(w, r, maxTaskBody, &body); err != nil {
		return err
	}
	o, err := h.taskOrder(body)
	if err != nil {
		return err
	}
	return h.start(w, r, o)
}

// stop lets nothing more of a job begin; with force, what runs is stopped, too.
func (h *orders) stop(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Job   pejson.Text `json:"job"`
		Force bool        `json:"force"`
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	j, err := h.job(r.Context(), fleet.JobStop, "job", string(body.Job))
	if err != nil {
		return err
	}
	if j, err = h.Jobs.Stop(r.Context(), fleet.ActorFrom(r.Context()), j.ID, body.Force); err != nil {
		return err
	}
	type stopped struct {
		named
		Nodes map[string]int `json:"nodes"`
	}
	pejson.Write(w, http.StatusAccepted, map[string]stopped{"job": {linksOf(r).numbered("jobs", j.ID), nodeStates(j.Counts)}})
	return nil
}
