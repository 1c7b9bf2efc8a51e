package rest

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
)

// Policies knows and changes what may be released, and when: policy.Service.
type Policies interface {
	Policies(ctx context.Context) ([]policy.Rule, error)
	PolicyHistory(ctx context.Context, name string) ([]policy.Rule, error)
	SetPolicy(ctx context.Context, actor fleet.Actor, name string, d policy.Definition) (policy.Rule, error)
	RemovePolicy(ctx context.Context, actor fleet.Actor, name string) (policy.Rule, error)
	Freezes(ctx context.Context) ([]policy.Freeze, error)
	FreezeHistory(ctx context.Context, name string) ([]policy.Freeze, error)
	SetFreeze(ctx context.Context, actor fleet.Actor, name string, f policy.Freezing) (policy.Freeze, error)
	RemoveFreeze(ctx context.Context, actor fleet.Actor, name string) (policy.Freeze, error)
}

// PreviewJudge judges all of a ready preview.
type PreviewJudge interface {
	JudgePreview(ctx context.Context, p preview.Preview, rules []policy.Rule, at time.Time) (policy.Verdict, error)
}

// policies answers the operations of policies and freezes.
type policies struct {
	gate     *gate
	previews *previews
	policies Policies
	judge    PreviewJudge
}

func (h *policies) bindings() []binding {
	return []binding{
		each(answer(api.PolicyList, h.listPolicies)),
		each(answer(api.PolicyShow, h.showPolicy)),
		each(answer(api.PolicySet, h.setPolicy)),
		each(answer(api.PolicyRemove, h.removePolicy)),
		each(answer(api.PolicyHistory, h.listPolicyHistory)),
		each(answer(api.PolicyTest, h.testPolicies)),
		each(answer(api.FreezeList, h.listFreezes)),
		each(answer(api.FreezeSet, h.setFreeze)),
		each(answer(api.FreezeRemove, h.removeFreeze)),
		each(answer(api.FreezeHistory, h.listFreezeHistory)),
	}
}

func (h *policies) listPolicies(ctx context.Context, _ api.Nothing) (api.List[api.Policy], error) {
	rules, err := h.policies.Policies(ctx)
	return listOfRules(rules, policyOf), err
}

func (h *policies) showPolicy(ctx context.Context, request api.PolicyNameRequest) (api.Policy, error) {
	rule, err := h.policy(ctx, request.Policy)
	return policyOf(rule), err
}

// policy is a policy that is set; NotFound.
func (h *policies) policy(ctx context.Context, name string) (policy.Rule, error) {
	history, err := h.policies.PolicyHistory(ctx, name)
	if err != nil {
		return policy.Rule{}, err
	}
	if history[0].Removed {
		return policy.Rule{},
			fault.New(fault.NotFound, "there is no policy %.80q any more: %s removed it; see `tutti policy history %s`", name, history[0].Author, name)
	}
	return history[0], nil
}

func (h *policies) listPolicyHistory(ctx context.Context, request api.PolicyNameRequest) (api.List[api.Policy], error) {
	rules, err := h.policies.PolicyHistory(ctx, request.Policy)
	return listOfRules(rules, policyOf), err
}

func definitionOf(d api.PolicyDefinition) policy.Definition {
	return policy.Definition{
		Environments: words[fleet.Environment](d.Environments), Effect: policy.Effect(d.Effect), Role: d.Role, AuthorMay: d.AuthorMay,
		Message: d.Message, When: d.When, Zone: d.Zone,
	}
}

func (h *policies) setPolicy(ctx context.Context, request api.PolicySetRequest) (api.Policy, error) {
	d := definitionOf(request.Definition)
	if err := h.gate.mayWriteRules(ctx, d.Environments); err != nil {
		return api.Policy{}, err
	}
	before, err := h.policies.PolicyHistory(ctx, request.Policy)
	switch {
	case err != nil && fault.Of(err) != fault.NotFound:
		return api.Policy{}, err
	case err == nil && !before[0].Removed: // who may not take it away may not change it
		if err := h.gate.mayWriteRules(ctx, before[0].Environments); err != nil {
			return api.Policy{}, err
		}
	}
	rule, err := h.policies.SetPolicy(ctx, fleet.ActorFrom(ctx), request.Policy, d)
	return policyOf(rule), err
}

func (h *policies) removePolicy(ctx context.Context, request api.PolicyNameRequest) (api.Policy, error) {
	before, err := h.policy(ctx, request.Policy)
	if err != nil {
		return api.Policy{}, err
	}
	if err := h.gate.mayWriteRules(ctx, before.Environments); err != nil {
		return api.Policy{}, err
	}
	rule, err := h.policies.RemovePolicy(ctx, fleet.ActorFrom(ctx), request.Policy)
	return policyOf(rule), err
}

func (h *policies) testPolicies(ctx context.Context, request api.PolicyTestRequest) (api.PolicyVerdict, error) {
	p, err := h.previews.preview(ctx, fleet.PreviewRead, request.Preview)
	if err != nil {
		return api.PolicyVerdict{}, err
	}
	if err := h.gate.allow(ctx, fleet.PolicyRead, fleet.Object{Environment: p.Environment}); err != nil {
		return api.PolicyVerdict{}, err
	}
	var rules []policy.Rule
	switch {
	case request.Policy != "" && request.Definition != nil:
		return api.PolicyVerdict{}, fault.New(fault.Invalid, "field definition: a policy is named already; give one of them")
	case request.Definition != nil:
		rules = []policy.Rule{{Name: "test", Definition: definitionOf(*request.Definition)}}
		err = rules[0].Check()
	case request.Policy != "":
		rules = make([]policy.Rule, 1)
		rules[0], err = h.policy(ctx, request.Policy)
	default:
		rules, err = h.policies.Policies(ctx)
	}
	if err != nil {
		return api.PolicyVerdict{}, err
	}
	at := time.Now()
	if request.At != nil {
		at = *request.At
	}
	verdict, err := h.judge.JudgePreview(ctx, p, rules, at)
	return verdictOf(verdict), err
}

func (h *policies) listFreezes(ctx context.Context, _ api.Nothing) (api.List[api.Freeze], error) {
	freezes, err := h.policies.Freezes(ctx)
	return listOfRules(freezes, freezeOf), err
}

func (h *policies) listFreezeHistory(ctx context.Context, request api.FreezeNameRequest) (api.List[api.Freeze], error) {
	freezes, err := h.policies.FreezeHistory(ctx, request.Freeze)
	return listOfRules(freezes, freezeOf), err
}

func (h *policies) setFreeze(ctx context.Context, request api.FreezeSetRequest) (api.Freeze, error) {
	d := request.Definition
	f := policy.Freezing{Environments: words[fleet.Environment](d.Environments), Weekly: d.Weekly, Zone: d.Zone, Why: d.Why}
	if d.From != nil {
		f.From = d.From.UTC()
	}
	if d.To != nil {
		f.To = d.To.UTC()
	}
	if err := h.gate.mayWriteRules(ctx, f.Environments); err != nil {
		return api.Freeze{}, err
	}
	before, err := h.policies.FreezeHistory(ctx, request.Freeze)
	switch {
	case err != nil && fault.Of(err) != fault.NotFound:
		return api.Freeze{}, err
	case err == nil && !before[0].Removed:
		if err := h.gate.mayWriteRules(ctx, before[0].Environments); err != nil {
			return api.Freeze{}, err
		}
	}
	freeze, err := h.policies.SetFreeze(ctx, fleet.ActorFrom(ctx), request.Freeze, f)
	return freezeOf(freeze), err
}

func (h *policies) removeFreeze(ctx context.Context, request api.FreezeNameRequest) (api.Freeze, error) {
	before, err := h.policies.FreezeHistory(ctx, request.Freeze)
	if err != nil {
		return api.Freeze{}, err
	}
	if err := h.gate.mayWriteRules(ctx, before[0].Environments); err != nil {
		return api.Freeze{}, err
	}
	freeze, err := h.policies.RemoveFreeze(ctx, fleet.ActorFrom(ctx), request.Freeze)
	return freezeOf(freeze), err
}

func policyOf(r policy.Rule) api.Policy {
	return api.Policy{
		Name: r.Name, Version: r.Version, Author: r.Author, At: r.At.UTC(), Removed: r.Removed,
		PolicyDefinition: api.PolicyDefinition{
			Environments: words[string](r.Environments), Effect: string(r.Effect), Role: r.Role, AuthorMay: r.AuthorMay, Message: r.Message, When: r.When, Zone: r.Zone,
		},
	}
}

func freezeOf(f policy.Freeze) api.Freeze {
	freeze := api.Freeze{
		Name: f.Name, Version: f.Version, Author: f.Author, At: f.At.UTC(), Removed: f.Removed,
		FreezeDefinition: api.FreezeDefinition{
			Environments: words[string](f.Environments), From: timeOf(f.From), To: timeOf(f.To), Weekly: f.Weekly, Zone: f.Zone, Why: f.Why,
		},
	}
	f.Environments = nil
	if frozen := policy.FrozenAt([]policy.Freeze{f}, "", time.Now()); frozen != nil {
		freeze.Until = timeOf(frozen.Until)
	}
	return freeze
}

func verdictOf(v policy.Verdict) api.PolicyVerdict {
	verdict := api.PolicyVerdict{Findings: []api.PolicyFinding{}}
	for _, f := range v.Findings {
		verdict.Findings = append(verdict.Findings, api.PolicyFinding{
			Policy: f.Rule, Version: f.Version, Effect: string(f.Effect), Role: f.Role, AuthorMay: f.AuthorMay, Message: f.Message,
			Nodes: f.Nodes, Found: f.Found, Changes: f.Changes, Broken: f.Broken,
		})
	}
	if v.Frozen != nil {
		verdict.Frozen = &api.Frozen{Until: v.Frozen.Until.UTC(), Why: v.Frozen.Why, Freezes: v.Frozen.Freezes}
	}
	return verdict
}
