package rest

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// Noise knows and changes which changes of previews are hidden: preview.Service.
type Noise interface {
	Quiet(ctx context.Context, p preview.Preview) (preview.Quiet, error)
	QuietOn(ctx context.Context, p preview.Preview, node fleet.Certname, changes []api.ChangeGroup) ([]string, error)
	NoiseRules(ctx context.Context) ([]preview.NoiseRule, error)
	NoiseHistory(ctx context.Context, name string) ([]preview.NoiseRule, error)
	SetNoise(ctx context.Context, actor fleet.Actor, name string, n preview.Noise) (preview.NoiseRule, error)
	RemoveNoise(ctx context.Context, actor fleet.Actor, name string) (preview.NoiseRule, error)
	SuggestNoise(ctx context.Context, env fleet.Environment, least int) ([]preview.Suggestion, error)
}

// suggestFrom is in how many previews a change is acknowledged before it is suggested as noise.
const suggestFrom = 3

// mayWriteRules returns nil when who asks may write rules for each of the environments; none: for all there are.
func (h *gate) mayWriteRules(ctx context.Context, environments []fleet.Environment) error {
	if len(environments) == 0 {
		return h.allow(ctx, fleet.PolicyWrite, fleet.Object{})
	}
	for _, env := range environments {
		if err := h.allow(ctx, fleet.PolicyWrite, fleet.Object{Environment: env}); err != nil {
			return err
		}
	}
	return nil
}

// noise answers the operations of noise rules.
type noise struct {
	gate  *gate
	rules Noise
}

func (h *noise) bindings() []binding {
	return []binding{
		each(answer(api.NoiseList, h.listNoise)),
		each(answer(api.NoiseSet, h.setNoise)),
		each(answer(api.NoiseRemove, h.removeNoise)),
		each(answer(api.NoiseHistory, h.listNoiseHistory)),
		answer(api.NoiseSuggest, h.suggestNoise),
	}
}

func (h *noise) listNoise(ctx context.Context, _ api.Nothing) (api.List[api.NoiseRule], error) {
	rules, err := h.rules.NoiseRules(ctx)
	return listOfRules(rules, noiseRuleOf), err
}

func (h *noise) listNoiseHistory(ctx context.Context, request api.NoiseRequest) (api.List[api.NoiseRule], error) {
	rules, err := h.rules.NoiseHistory(ctx, request.Rule)
	return listOfRules(rules, noiseRuleOf), err
}

// listOfRules is versions of rules as an answer.
func listOfRules[R, A any](rules []R, as func(R) A) api.List[A] {
	list := api.List[A]{Items: make([]A, len(rules))}
	for i, r := range rules {
		list.Items[i] = as(r)
	}
	return list
}

func (h *noise) setNoise(ctx context.Context, request api.NoiseSetRequest) (api.NoiseRule, error) {
	n := preview.Noise{
		Environments: words[fleet.Environment](request.Noise.Environments), Change: request.Noise.Change, Type: fleet.Glob(request.Noise.Type),
		Title: fleet.Glob(request.Noise.Title), Parameters: words[fleet.Glob](request.Noise.Parameters), Nodes: request.Noise.Nodes, Why: request.Noise.Why,
	}
	if err := h.gate.mayWriteRules(ctx, n.Environments); err != nil {
		return api.NoiseRule{}, err
	}
	rules, err := h.rules.NoiseRules(ctx)
	if err != nil {
		return api.NoiseRule{}, err
	}
	if at := slices.IndexFunc(rules, func(r preview.NoiseRule) bool { return r.Name == request.Rule }); at >= 0 {
		if err := h.gate.mayWriteRules(ctx, rules[at].Environments); err != nil {
			return api.NoiseRule{}, err
		}
	}
	rule, err := h.rules.SetNoise(ctx, fleet.ActorFrom(ctx), request.Rule, n)
	return noiseRuleOf(rule), err
}

func (h *noise) removeNoise(ctx context.Context, request api.NoiseRequest) (api.NoiseRule, error) {
	history, err := h.rules.NoiseHistory(ctx, request.Rule)
	if err != nil {
		return api.NoiseRule{}, err
	}
	if err := h.gate.mayWriteRules(ctx, history[0].Environments); err != nil {
		return api.NoiseRule{}, err
	}
	rule, err := h.rules.RemoveNoise(ctx, fleet.ActorFrom(ctx), request.Rule)
	return noiseRuleOf(rule), err
}

func (h *noise) suggestNoise(ctx context.Context, request api.NoiseSuggestRequest) (api.List[api.NoiseSuggestion], error) {
	list := api.List[api.NoiseSuggestion]{Items: []api.NoiseSuggestion{}}
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return list, err
	}
	if request.Least < 0 {
		return list, fault.New(fault.Invalid, "least must be a number of previews, not %d", request.Least)
	}
	if request.Least == 0 {
		request.Least = suggestFrom
	}
	suggestions, err := h.rules.SuggestNoise(ctx, env, request.Least)
	for _, s := range suggestions {
		list.Items = append(list.Items, api.NoiseSuggestion{Name: s.Name, Previews: s.Previews, People: s.People, Titles: s.Titles, Noise: noiseOf(s.Noise)})
	}
	return list, err
}

// markNoise names the rule that hides each of a node's differences.
func (h *noise) markNoise(ctx context.Context, p preview.Preview, node fleet.Certname, resources []api.ResourceDifference) error {
	changes := make([]api.ChangeGroup, len(resources))
	for i, r := range resources {
		changes[i] = api.ChangeGroup{Change: r.Change, Type: r.Type, Title: diff.TitleFor(string(node), r.Title), OrderOnly: r.OrderOnly}
		for _, parameter := range r.Parameters {
			if r.Change == "changed" && !parameter.OrderOnly && !slices.Contains(changes[i].Parameters, parameter.Name) {
				changes[i].Parameters = append(changes[i].Parameters, parameter.Name)
			}
		}
	}
	by, err := h.rules.QuietOn(ctx, p, node, changes)
	for i := range by {
		resources[i].Noise = by[i]
	}
	return err
}

func hiddenOf(q preview.Quiet) (hidden []api.HiddenChanges) {
	for _, rule := range q.Rules {
		hidden = append(hidden, api.HiddenChanges(rule))
	}
	return hidden
}

func noiseRuleOf(r preview.NoiseRule) api.NoiseRule {
	return api.NoiseRule{Name: r.Name, Version: r.Version, Author: r.Author, At: r.At.UTC(), Removed: r.Removed, Noise: noiseOf(r.Noise)}
}

func noiseOf(n preview.Noise) api.Noise {
	return api.Noise{
		Environments: words[string](n.Environments), Change: n.Change, Type: string(n.Type), Title: string(n.Title),
		Parameters: words[string](n.Parameters), Nodes: n.Nodes, Why: n.Why,
	}
}

// words is a list of words as those of another type.
func words[To, From ~string](list []From) []To {
	if len(list) == 0 {
		return nil
	}
	to := make([]To, len(list))
	for i, word := range list {
		to[i] = To(word)
	}
	return to
}
