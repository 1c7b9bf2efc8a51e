package job

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Plan is what an order would do now. Nothing is stored, and nothing begins.
func (s *Service) Plan(ctx context.Context, actor fleet.Actor, spec Spec) (Plan, error) {
	if err := spec.Check(); err != nil {
		return Plan{}, err
	}
	spec.Timeout = cmp.Or(spec.Timeout, s.settings.Timeout)
	nodes := spec.Targets.Settled
	if nodes == nil {
		found, err := s.Resolver.Resolve(ctx, spec.Targets)
		if err != nil {
			return Plan{}, err
		}
		nodes = found
	}
	spec.Targets.Settled = nil // it is no part of the order
	if len(nodes) > MaxTargets {
		return Plan{}, fault.New(fault.Invalid, "field targets: they are %d nodes, at most %d can be in one job", len(nodes), MaxTargets)
	}
	refused, err := s.Gate.Refused(ctx, actor, spec, nodes)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Spec: spec.withoutSecrets(), Targets: make([]Target, len(nodes))}
	for i, node := range nodes {
		link, connected := s.Sender.Connected(node)
		plan.Targets[i] = Target{Node: node, Connected: connected, Denied: refused[node]}
		if connected {
			plan.Targets[i].Agent = link.Agent
		}
	}
	if spec.Ordered {
		plan.Edges, plan.Layers, err = s.layers(ctx, nodes)
	}
	return plan, err
}

// Create orders a job: when it returns the job survives a crash, and begins by itself.
// Denied if one of the targets is not actor's to touch: nothing begins then.
func (s *Service) Create(ctx context.Context, actor fleet.Actor, spec Spec) (Job, error) {
	return s.create(ctx, actor, spec, 0)
}

func (s *Service) create(ctx context.Context, actor fleet.Actor, spec Spec, rerunOf int64) (Job, error) {
	plan, err := s.Plan(ctx, actor, spec)
	if err != nil {
		return Job{}, err
	}
	if len(plan.Targets) == 0 {
		return Job{}, fault.New(fault.Invalid, "field targets: no node is meant")
	}
	if err := plan.refusal(); err != nil {
		return Job{}, err
	}
	sealed, err := s.seal(spec)
	if err != nil {
		return Job{}, err
	}
	j := Job{
		Spec: plan.Spec, Actor: actor.Name, ActorKind: actor.Kind, Status: Queued, RerunOf: rerunOf,
		CreatedAt: s.Now(), Counts: Counts{Waiting: len(plan.Targets)}, Edges: plan.edges(),
	}
	j, err = s.Store.CreateJob(ctx, j, s.runs(plan), sealed)
	if err != nil {
		return Job{}, err
	}
	s.Log.InfoContext(ctx, "job ordered", "job", j.ID, "kind", j.Spec.Kind, "targets", len(plan.Targets), "actor", actor.Name)
	s.nudgeAll()
	return j, nil
}

func (s *Service) runs(plan Plan) []Run {
	runs := make([]Run, len(plan.Targets))
	for i, t := range plan.Targets {
		runs[i] = Run{ID: s.NewID(), Number: i + 1, Node: t.Node, State: Waiting}
	}
	for node, reason := range plan.waits() {
		runs[node-1].Reason = reason
	}
	return runs
}

// refusal names who is denied, if anybody is.
func (p Plan) refusal() error {
	denied := p.Denied()
	if denied == 0 {
		return nil
	}
	i := slices.IndexFunc(p.Targets, func(t Target) bool { return t.Denied != "" })
	others := ""
	if denied > 1 {
		others = fmt.Sprintf(" and %d more", denied-1)
	}
	return fault.New(fault.Denied, "%s%s: %s", p.Targets[i].Node, others, p.Targets[i].Denied)
}

// seal is what is secret in an order, unreadable; nil if nothing is.
func (s *Service) seal(spec Spec) ([]byte, error) {
	if secret := spec.secret(); len(secret) > 0 {
		return s.Sealer.Seal(secret)
	}
	return nil, nil
}

// secret is an object with what is secret in an order; nil: nothing is.
func (s Spec) secret() json.RawMessage {
	switch s.Kind {
	case Task:
		return s.Task.Secret
	case Action:
		return s.Action.Secret
	case Puppet, Command, Script, File:
	}
	return nil
}

// withoutSecrets is what may be stored and shown: of a secret its name.
func (s Spec) withoutSecrets() Spec {
	hidden := namesIn(s.secret())
	switch s.Kind {
	case Task:
		t := *s.Task
		t.Hidden, t.Secret = hidden, nil
		s.Task = &t
	case Action:
		a := *s.Action
		a.Hidden, a.Secret = hidden, nil
		s.Action = &a
	case Puppet, Command, Script, File:
	}
	return s
}

// namesIn is the names in an object.
func namesIn(object json.RawMessage) []string {
	var members map[string]json.RawMessage
	if len(object) > 0 {
		_ = json.Unmarshal(object, &members) // it was checked
	}
	return slices.Sorted(maps.Keys(members))
}

// Stop lets nothing more of a job begin; what runs goes on to its end, or is killed.
// A job that has ended stays as it is. NotFound.
func (s *Service) Stop(ctx context.Context, actor fleet.Actor, id int64, kill bool) (Job, error) {
	word := "stopped"
	if kill {
		word = "killed"
	}
	j, err := s.Store.Direct(ctx, id, Direction{Kill: kill, Reason: fmt.Sprintf("%s by %s", word, actor.Name), At: s.Now()})
	if err != nil {
		return Job{}, err
	}
	s.Log.InfoContext(ctx, "job stopped", "job", id, "kill", kill, "actor", actor.Name)
	s.changes.Tell(id)
	s.nudgeAll()
	return j, nil
}

// Again is how to repeat a job.
type Again struct {
	// Failed leaves out the nodes whose run succeeded; otherwise all nodes of the job are meant.
	Failed bool
	// Spec is the order, edited; nil: as it was. With targets of its own these count.
	Spec *Spec
	// Secret is what was secret, which the job has forgotten when it has ended; nil: nothing was,
	// or Spec has it.
	Secret json.RawMessage
}

// Rerun orders the work of a job that has ended again, as a new job. Conflict while it
// goes on, Invalid if secrets are missing.
func (s *Service) Rerun(ctx context.Context, actor fleet.Actor, id int64, again Again) (Job, error) {
	old, err := s.Store.Job(ctx, id)
	if err != nil {
		return Job{}, err
	}
	if !old.Status.Final() {
		return Job{}, fault.New(fault.Conflict, "job %d is %s; a job can be repeated when it has ended", id, old.Status)
	}
	spec := old.Spec
	if again.Spec != nil {
		spec = *again.Spec
	}
	if again.Spec == nil || again.Spec.Targets.none() {
		if spec.Targets.Nodes, err = s.nodesAgain(ctx, id, again.Failed); err != nil {
			return Job{}, err
		}
		spec.Targets = Targets{Nodes: spec.Targets.Nodes}
	}
	if spec, err = spec.withSecrets(again.Secret); err != nil {
		return Job{}, err
	}
	spec.Key, spec.Plan, spec.Schedule = "", 0, 0 // it is another order, of who asks now
	return s.create(ctx, actor, spec, id)
}

func (t Targets) none() bool {
	return len(t.Nodes) == 0 && t.Group == "" && t.Query == "" && t.App == "" && !t.All
}

// nodesAgain is the nodes of a job, or those that did not succeed.
func (s *Service) nodesAgain(ctx context.Context, id int64, failed bool) ([]fleet.Certname, error) {
	var nodes []fleet.Certname
	for after := 0; ; {
		runs, err := s.Store.Runs(ctx, id, RunPage{After: after, Limit: s.settings.Batch})
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			if after = r.Number; !failed || r.State != Succeeded {
				nodes = append(nodes, r.Node)
			}
		}
	}
	if len(nodes) == 0 {
		return nil, fault.New(fault.Conflict, "every run of job %d succeeded: there is nothing to repeat", id)
	}
	return nodes, nil
}

// withSecrets completes an order that was stored without its secrets.
func (s Spec) withSecrets(secret json.RawMessage) (Spec, error) {
	var hidden []string
	field := ""
	switch s.Kind {
	case Task:
		t := *s.Task
		if secret != nil {
			t.Secret = secret
		}
		if err := t.check(); err != nil {
			return s, err
		}
		s.Task, hidden, field = &t, t.Hidden, "parameters"
	case Action:
		a := *s.Action
		if secret != nil {
			a.Secret = secret
		}
		if err := a.check(); err != nil {
			return s, err
		}
		s.Action, hidden, field = &a, a.Hidden, "input"
	case Puppet, Command, Script, File:
	}
	given := namesIn(s.secret())
	for _, name := range hidden {
		if !slices.Contains(given, name) {
			return s, fault.New(fault.Invalid, "field %s: %s is secret and was forgotten when the job ended; give it again", field, name)
		}
	}
	return s, nil
}
