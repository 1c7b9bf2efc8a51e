// Package submit makes a job of an order that names nodes and a task by words: it finds the task in the code of an environment and
// checks its parameters, finds out which nodes are meant, leaves out or refuses nodes that the order is not allowed for, and gives
// the rest to the job core.
//
// Every door that takes orders of tasks makes its specs with TaskSpec. Service is for doors that answer at once with a job, without
// showing a plan first.
//
// Errors: a *Refusal says in one word what was wrong with an order; its fault is that of its cause. Other errors are those of ports.
package submit

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// Jobs takes orders; *job.Service does.
type Jobs interface {
	Plan(ctx context.Context, actor fleet.Actor, spec job.Spec) (job.Plan, error)
	Create(ctx context.Context, actor fleet.Actor, spec job.Spec) (job.Job, error)
}

// Targets says who is meant; target.Resolver does.
type Targets interface {
	Resolve(ctx context.Context, wanted job.Targets) ([]fleet.Certname, error)
	// Of is the active nodes of an environment.
	Of(ctx context.Context, env fleet.Environment) ([]fleet.Certname, error)
}

// Order is what somebody asks for, before anything of it was looked up.
type Order struct {
	Spec job.Spec `json:"spec"`           // of a task, without it; of a Puppet run that enforces no environment, without that
	Task *Task    `json:"task,omitempty"` // nil: it is a Puppet run
	// Whole is the environment whose nodes are all meant; empty: the spec's targets are.
	Whole fleet.Environment `json:"whole,omitempty"`
	// Skip leaves out the nodes that the order is not allowed for, as long as one is left. Otherwise one of them refuses it.
	Skip bool `json:"skip,omitempty"`
}

// Word says what was wrong with an order.
type Word string

// The words.
const (
	UnknownEnvironment Word = "environment" // it has no code
	UnknownTask        Word = "task"        // there is no such task in it
	Malformed          Word = "order"       // a field, or a parameter of the task
	Unresolved         Word = "targets"     // they cannot be found: a query or group that is wrong
	Nobody             Word = "nobody"      // they are no node at all
	Circle             Word = "circle"      // nodes wait for each other
	NotAllowed         Word = "denied"
)

// Refusal is why an order was not taken.
type Refusal struct {
	Word Word
	Err  error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap is the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// refuse gives a cause a word, if it is one that who asks can do something about.
func refuse(word Word, err error) error {
	if err == nil || fault.Is(err, fault.Internal) || fault.Is(err, fault.Unavailable) {
		return err
	}
	return &Refusal{word, err}
}

// Service makes jobs of orders.
type Service struct {
	Jobs    Jobs
	Tasks   Tasks
	Targets Targets
}

// Spec is what an order is when everything was found, without its nodes.
func (s Service) Spec(ctx context.Context, o Order) (job.Spec, error) {
	spec := o.Spec
	if o.Task != nil {
		found, err := TaskSpec(ctx, s.Tasks, spec.Environment, *o.Task)
		if err != nil {
			return spec, err
		}
		spec.Task = found
	} else if env := cmp.Or(o.Whole, spec.Environment); env != "" {
		if _, _, err := s.Tasks.TaskVersion(ctx, env); err != nil {
			return spec, unknown(UnknownEnvironment, err)
		}
	}
	if o.Whole != "" {
		spec.Targets.All = true // until Submit has found them: a spec names somebody
	}
	return spec, refuse(Malformed, spec.Check())
}

// Submit makes a job of an order.
func (s Service) Submit(ctx context.Context, actor fleet.Actor, o Order) (job.Job, error) {
	spec, err := s.Spec(ctx, o)
	if err != nil {
		return job.Job{}, err
	}
	if spec.Targets.Settled, err = s.nodes(ctx, o); err != nil {
		return job.Job{}, err
	}
	if o.Whole != "" {
		spec.Targets.All, spec.Targets.Nodes = false, spec.Targets.Settled
	}
	plan, err := s.Jobs.Plan(ctx, actor, spec)
	if err != nil {
		return job.Job{}, refuse(planWord(spec), err)
	}
	if spec, err = withoutDenied(o, spec, plan); err != nil {
		return job.Job{}, err
	}
	created, err := s.Jobs.Create(ctx, actor, spec)
	if fault.Is(err, fault.Denied) {
		return created, refuse(NotAllowed, err)
	}
	return created, refuse(Malformed, err)
}

// planWord is what is wrong when a plan of a checked spec cannot be made: only the order of nodes is left.
func planWord(spec job.Spec) Word {
	if spec.Ordered {
		return Circle
	}
	return Malformed
}

// nodes is who is meant; at least one.
func (s Service) nodes(ctx context.Context, o Order) (nodes []fleet.Certname, err error) {
	if o.Whole != "" {
		nodes, err = s.Targets.Of(ctx, o.Whole)
	} else {
		nodes, err = s.Targets.Resolve(ctx, o.Spec.Targets)
	}
	if err != nil {
		return nil, refuse(Unresolved, err)
	}
	if len(nodes) == 0 {
		return nil, &Refusal{Nobody, fault.New(fault.Invalid, "no node is meant by these targets; nothing was started")}
	}
	return nodes, nil
}

// withoutDenied leaves out the nodes that are denied, if the order says so.
func withoutDenied(o Order, spec job.Spec, plan job.Plan) (job.Spec, error) {
	var kept, denied []fleet.Certname
	why := ""
	for _, t := range plan.Targets {
		if t.Denied == "" {
			kept = append(kept, t.Node)
			continue
		}
		denied = append(denied, t.Node)
		why = t.Denied
	}
	if len(denied) == 0 {
		return spec, nil
	}
	if !o.Skip || len(kept) == 0 {
		return spec, &Refusal{NotAllowed, fault.New(fault.Denied, "%s. It is denied for %d of %s; nothing was started",
			why, len(denied), fault.Count(len(plan.Targets), "node"))}
	}
	spec.Targets.Exclude = append(slices.Clone(spec.Targets.Exclude), denied...)
	spec.Targets.Settled = kept
	return spec, nil
}

// WordOf is the word of a refusal, or empty.
func WordOf(err error) Word {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Word
	}
	return ""
}
