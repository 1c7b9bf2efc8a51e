package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// Catalogue says which modules nodes have.
type Catalogue interface {
	// Latest is the newest description of a module that has an action, else the newest of all. NotFound: no node has the module.
	Latest(ctx context.Context, module, action string) (action.Module, error)
	// Has is the digest of the description of a module as a node has it. NotFound: it does not have it, or its agent does not tell which it has.
	Has(node fleet.Certname, module string) (fleet.Digest, error)
	// Described is the description with a digest. NotFound: no node has told it yet.
	Described(ctx context.Context, module string, digest fleet.Digest) (action.Module, error)
}

// Resolver says which nodes are meant: sorted, each once.
type Resolver interface {
	Resolve(ctx context.Context, t job.Targets) ([]fleet.Certname, error)
}

// Gate says which nodes somebody may not do something with, and what is missing.
type Gate interface {
	RefusedTo(ctx context.Context, actor fleet.Actor, p fleet.Permission, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error)
}

// Asker asks an action of nodes; *call.Caller does.
type Asker interface {
	Ask(ctx context.Context, q call.Question, tell func([]action.Answer))
}

// Recorder writes down calls that have ended; history.Keeper does.
type Recorder interface {
	Keep(ctx context.Context, c history.Call)
}

// Service calls actions.
type Service struct {
	Catalogue Catalogue
	Resolver  Resolver
	Gate      Gate
	Asker     Asker
	Recorder  Recorder
	Now       func() time.Time
}

// Request is a call as somebody wants it.
type Request struct {
	Module     string
	Action     string
	Texts      map[string]string          // input as text; the schema says what is a number
	Values     map[string]json.RawMessage // input as JSON
	Targets    job.Targets
	Timeout    time.Duration // of each node; 0: the action's own
	Batch      int           // nodes at a time; 0: all
	Sleep      time.Duration // between two batches
	SkipDenied bool          // leave out nodes that who asks may not ask
}

// The bounds of a call.
const (
	MaxTimeout = time.Hour
	MaxSleep   = time.Hour
)

// Call is a call that was checked and can be made.
type Call struct {
	Action action.Action
	Nodes  []fleet.Certname // that are meant

	question call.Question
	told     []action.Answer // of nodes that are not asked
	record   history.Call    // what is known before anybody is asked
}

// Find is the newest description of an action.
func (s Service) Find(ctx context.Context, module, name string) (action.Action, error) {
	described, err := s.Catalogue.Latest(ctx, module, name)
	if err != nil {
		return action.Action{}, err
	}
	a, found := described.Find(name)
	if !found {
		var names []string
		for _, other := range described.Actions {
			names = append(names, other.Name)
		}
		return a, &fault.Error{
			Kind:   fault.NotFound,
			Detail: "the module " + module + " has no action " + name,
			Hint:   cmp.Or(fault.DidYouMean(name, names), "look at them: tutti action show "+module),
		}
	}
	return a, nil
}

// Order is an action as a part of a job, with its input checked.
func (s Service) Order(ctx context.Context, r Request) (job.ActionSpec, error) {
	a, err := s.Find(ctx, r.Module, r.Action)
	if err != nil {
		return job.ActionSpec{}, err
	}
	schema, input, err := inputOf(a, r)
	if err != nil {
		return job.ActionSpec{}, err
	}
	shown, secret, err := schema.Split(input)
	return job.ActionSpec{Module: r.Module, Action: r.Action, Input: json.RawMessage(shown), Secret: json.RawMessage(secret)}, err
}

func inputOf(a action.Action, r Request) (*action.Schema, jsontext.Value, error) {
	schema, err := action.Compile(a.Input)
	if err != nil {
		return nil, nil, err
	}
	input, err := schema.Arguments(r.Texts, r.Values)
	if err != nil {
		return nil, nil, &fault.Error{
			Kind: fault.Invalid, Detail: "input of " + r.Module + " " + r.Action + ": " + fault.Detail(err),
			Hint: "see `tutti action show " + r.Module + "`", Err: err,
		}
	}
	return schema, input, nil
}

// Prepare checks a call of an action that only reads.
func (s Service) Prepare(ctx context.Context, r Request) (Call, error) {
	a, err := s.Find(ctx, r.Module, r.Action)
	if err != nil {
		return Call{}, err
	}
	if !a.ReadOnly {
		return Call{}, fault.New(fault.Invalid, "%s %s changes nodes, so it is a job: order it as one", r.Module, r.Action)
	}
	if err := r.check(); err != nil {
		return Call{}, err
	}
	schema, input, err := inputOf(a, r)
	if err != nil {
		return Call{}, err
	}
	shown, err := schema.Shown(input)
	if err != nil {
		return Call{}, err
	}
	actor := fleet.ActorFrom(ctx)
	c := Call{Action: a, record: history.Call{
		Actor: actor.Name, ActorKind: actor.Kind, Module: r.Module, Action: r.Action, Input: string(shown), Targets: r.Targets.Text(),
	}}
	if c.Nodes, err = s.Resolver.Resolve(ctx, r.Targets); err != nil {
		return c, err
	}
	spec := job.Spec{Kind: job.Action, Action: &job.ActionSpec{Module: r.Module, Action: r.Action}}
	refused, err := s.Gate.RefusedTo(ctx, actor, fleet.ActionAsk, spec, c.Nodes)
	if err != nil {
		return c, err
	}
	if len(refused) > 0 && (!r.SkipDenied || len(refused) == len(c.Nodes)) {
		return c, denied(c.Nodes, refused)
	}
	asked, err := s.able(ctx, r, c.Nodes, refused, &c)
	timeout := r.Timeout
	if timeout == 0 {
		timeout = a.Limit()
	}
	c.question = call.Question{
		Module: r.Module, Action: r.Action, Input: input, Caller: call.By(actor), Nodes: asked,
		Timeout: timeout + transit, Batch: r.Batch, Sleep: r.Sleep,
	}
	return c, err
}

// transit is how long questions and answers may be on their way, beside the time that the action has.
const transit = 5 * time.Second

func (r Request) check() error {
	switch {
	case r.Timeout < 0 || r.Timeout > MaxTimeout:
		return fault.New(fault.Invalid, "field timeout: it is between 0 and %s", MaxTimeout)
	case r.Batch < 0:
		return fault.New(fault.Invalid, "field batch: it is a number of nodes; 0 asks all at once")
	case r.Sleep < 0 || r.Sleep > MaxSleep:
		return fault.New(fault.Invalid, "field batch_sleep: it is between 0 and %s", MaxSleep)
	}
	return nil
}

func denied(nodes []fleet.Certname, refused map[fleet.Certname]string) error {
	i := slices.IndexFunc(nodes, func(node fleet.Certname) bool { return refused[node] != "" })
	return fault.New(fault.Denied, "%s. It is denied for %d of %s. Nobody was asked; skip_denied leaves them out", refused[nodes[i]], len(refused),
		fault.Count(len(nodes), "node"))
}

// able are the nodes that can be asked; of the others, the call is told why not.
func (s Service) able(ctx context.Context, r Request, nodes []fleet.Certname, refused map[fleet.Certname]string, c *Call) ([]fleet.Certname, error) {
	var asked []fleet.Certname
	known := map[fleet.Digest]action.Module{} // many nodes have the same
	for _, node := range nodes {
		if why := refused[node]; why != "" {
			c.told = append(c.told, action.Answer{Node: node, Code: action.Denied, Message: why})
			continue
		}
		described, err := s.described(ctx, node, r.Module, known)
		if fault.Is(err, fault.NotFound) {
			c.told = append(c.told, action.Answer{Node: node, Code: action.UnknownAction, Message: fault.Detail(err)})
			continue
		}
		if err != nil {
			return nil, err
		}
		a, found := described.Find(r.Action)
		switch {
		case !found:
			c.told = append(c.told, action.Answer{
				Node: node, Code: action.UnknownAction, Message: "version " + described.Version + " of its module " + r.Module + " has no action " + r.Action,
			})
		case !a.ReadOnly:
			c.told = append(c.told, action.Answer{
				Node: node, Code: action.Denied, Message: "in version " + described.Version + " of its module the action changes something: order it as a job",
			})
		default:
			asked = append(asked, node)
		}
	}
	return asked, nil
}

// described is a module as a node has it.
func (s Service) described(ctx context.Context, node fleet.Certname, module string, known map[fleet.Digest]action.Module) (m action.Module, err error) {
	digest, err := s.Catalogue.Has(node, module)
	if err != nil {
		return m, err
	}
	if m, there := known[digest]; there {
		return m, nil
	}
	if m, err = s.Catalogue.Described(ctx, module, digest); err == nil {
		known[digest] = m
	}
	return m, err
}

// Ask makes a call, and records it when it has ended. Each node that is meant is told once. When ctx is done, who asked has left.
func (s Service) Ask(ctx context.Context, c Call, tell func([]action.Answer)) {
	record := c.record
	record.Nodes, record.Counts, record.Began = len(c.Nodes), map[action.Code]int{}, s.Now()
	counted := func(answers []action.Answer) {
		for _, a := range answers {
			record.Counts[a.Code]++
		}
		tell(answers)
	}
	if len(c.told) > 0 {
		counted(c.told)
	}
	s.Asker.Ask(ctx, c.question, counted)
	record.Ended, record.Left = s.Now(), ctx.Err() != nil
	s.Recorder.Keep(ctx, record)
}
