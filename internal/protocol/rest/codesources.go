package rest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Sources is the git repositories whose branches are environments: source.Service.
type Sources interface {
	Sources() []source.Source
	Source(name string) (source.Source, error)
	// Branches lists the branches of a source, or of all, by environment.
	Branches(name string) []source.Branch
	Add(ctx context.Context, s source.Source, replace bool) (source.Source, error)
	Remove(ctx context.Context, name string) error
	Look(ctx context.Context, name string, purge bool) (source.Looked, error)
	Deploy(ctx context.Context, environments []fleet.Environment, by string) ([]source.Branch, error)
	// Wait waits until deploys have ended, by their numbers.
	Wait(ctx context.Context, deploys map[fleet.Environment]int64) ([]source.Branch, error)
}

// sources answers the operations of sources.
type sources struct {
	gate    *gate
	sources Sources
}

func (h *sources) bindings() []binding {
	return []binding{
		answer(api.SourceList, h.listSources),
		answer(api.SourceShow, h.showSource),
		answer(api.SourceAdd, h.addSource),
		answer(api.SourceRemove, h.removeSource),
		answer(api.SourceSync, h.syncSource),
		each(acting(api.SourceDeploy, h.mayDeploy, h.deployBranches)),
	}
}

func (h *sources) listSources(context.Context, api.Nothing) (api.List[api.CodeSource], error) {
	list := api.List[api.CodeSource]{Items: []api.CodeSource{}}
	for _, s := range h.sources.Sources() {
		list.Items = append(list.Items, sourceOf(s))
	}
	return list, nil
}

func (h *sources) showSource(_ context.Context, request api.NameRequest) (api.CodeSourceDetail, error) {
	s, err := h.sources.Source(request.Name)
	return api.CodeSourceDetail{CodeSource: sourceOf(s), Known: branchesOf(h.sources.Branches(request.Name))}, err
}

func (h *sources) addSource(ctx context.Context, request api.SourceAddRequest) (api.CodeSource, error) {
	if request.Interval < 0 || request.Interval > int64((365*24*time.Hour).Seconds()) {
		return api.CodeSource{}, fault.New(fault.Invalid, "field interval: %d is no number of seconds up to a year", request.Interval)
	}
	s, err := h.sources.Add(ctx, source.Source{
		Name: request.Name, Prefix: request.Prefix, Branches: request.Branches, Submodules: request.Submodules, NoModules: request.NoPuppetfile,
		Purge: request.Purge, Interval: time.Duration(request.Interval) * time.Second, AddedAt: time.Now().UTC(), AddedBy: fleet.ActorFrom(ctx).Name,
		Secrets: source.Secrets{URL: request.URL, Key: request.Key, KnownHosts: request.KnownHosts, Webhook: strings.TrimSpace(request.WebhookSecret)},
	}, request.Replace)
	return sourceOf(s), err
}

func (h *sources) removeSource(ctx context.Context, request api.NameRequest) (api.Nothing, error) {
	return api.Nothing{}, h.sources.Remove(ctx, request.Name)
}

func (h *sources) syncSource(ctx context.Context, request api.SourceSyncRequest) (api.SourceSynced, error) {
	looked, err := h.sources.Look(ctx, request.Name, request.Purge)
	if err != nil {
		return api.SourceSynced{}, err
	}
	deploys := looked.Deploys
	if request.Wait { // also for what somebody else asked for a moment ago, and what failed by then
		open := slices.DeleteFunc(h.sources.Branches(request.Name), func(b source.Branch) bool {
			asked := slices.ContainsFunc(deploys, func(d source.Branch) bool { return d.Environment == b.Environment })
			return !asked && (b.State == source.Complete || b.State == source.Failed && !b.GoneAt.IsZero())
		})
		if deploys, err = h.waitFor(ctx, open); err != nil {
			return api.SourceSynced{}, err
		}
	}
	return api.SourceSynced{
		Deploys: branchesOf(deploys), Gone: branchesOf(looked.Gone), Purged: append([]string{}, words[string](looked.Purged)...),
		Refused: append([]string{}, looked.Refused...),
	}, nil
}

func (h *sources) waitFor(ctx context.Context, deploys []source.Branch) ([]source.Branch, error) {
	numbers := make(map[fleet.Environment]int64, len(deploys))
	for _, b := range deploys {
		numbers[b.Environment] = max(b.ID, b.NextID)
	}
	return h.sources.Wait(ctx, numbers)
}

// mayDeploy checks the right for each environment that is named.
func (h *sources) mayDeploy(ctx context.Context, request api.SourceDeployRequest) (about string, err error) {
	switch {
	case request.All && len(request.Environments) > 0:
		return "", fault.New(fault.Invalid, "environments are named, and all are meant: give one of both")
	case !request.All && len(request.Environments) == 0:
		return "", fault.New(fault.Invalid, "no environment is named; all of them are meant by all")
	case len(request.Environments) > maxDeployed:
		return "", fault.New(fault.Invalid, "%d environments are named, at most %d are allowed", len(request.Environments), maxDeployed)
	case request.All:
		return "all", nil
	}
	for _, name := range request.Environments {
		env, err := fleet.ParseEnvironment(name)
		if err != nil {
			return "", err
		}
		if err := h.gate.allow(ctx, fleet.CodeDeploy, fleet.Object{Environment: env}); err != nil {
			return "", err
		}
	}
	return strings.Join(request.Environments, " "), nil
}

// maxDeployed is how many environments one request may name.
const maxDeployed = 1000

func (h *sources) deployBranches(ctx context.Context, request api.SourceDeployRequest) (api.List[api.CodeBranch], error) {
	known := h.sources.Branches("")
	environments := words[fleet.Environment](request.Environments)
	if request.All {
		may, err := seen(ctx, h.gate, fleet.CodeDeploy, known, func(b source.Branch) fleet.Object { return fleet.Object{Environment: b.Environment} })
		if err != nil {
			return api.List[api.CodeBranch]{}, err
		}
		for _, b := range may {
			environments = append(environments, b.Environment)
		}
	}
	if request.DryRun {
		return h.wouldDeploy(environments, known)
	}
	asked, err := h.sources.Deploy(ctx, environments, fleet.ActorFrom(ctx).Name)
	if err == nil && request.Wait {
		asked, err = h.waitFor(ctx, asked)
	}
	return api.List[api.CodeBranch]{Items: branchesOf(asked)}, err
}

// wouldDeploy lists environments as they are; those that no source has are a NotFound.
func (h *sources) wouldDeploy(environments []fleet.Environment, known []source.Branch) (list api.List[api.CodeBranch], err error) {
	byName := make(map[fleet.Environment]source.Branch, len(known))
	for _, b := range known {
		byName[b.Environment] = b
	}
	list.Items = []api.CodeBranch{}
	for _, env := range environments {
		b, there := byName[env]
		if !there {
			return list, fault.New(fault.NotFound, "the environment %s is no branch of a source", env)
		}
		list.Items = append(list.Items, branchOf(b))
	}
	return list, nil
}

func sourceOf(s source.Source) api.CodeSource {
	return api.CodeSource{
		Name: s.Name, URL: s.URL, Prefix: s.Prefix, Branches: s.Branches, Submodules: s.Submodules, NoPuppetfile: s.NoModules, Purge: s.Purge,
		Interval: int64(s.Interval.Seconds()), HasKey: s.Secrets.Key != "", HasWebhook: s.Secrets.Webhook != "", AddedAt: s.AddedAt.UTC(), AddedBy: s.AddedBy,
		LookedAt: timeOf(s.LookedAt), Trouble: s.Trouble, Refused: s.Refused,
	}
}

func branchesOf(list []source.Branch) []api.CodeBranch {
	shown := make([]api.CodeBranch, len(list))
	for i, b := range list {
		shown[i] = branchOf(b)
	}
	return shown
}

func branchOf(b source.Branch) api.CodeBranch {
	return api.CodeBranch{
		Environment: string(b.Environment), Source: b.Source, Branch: b.Name, Commit: b.Commit, Version: string(b.Version), DeployedAt: timeOf(b.DeployedAt),
		ID: b.ID, State: string(b.State), Error: b.Error, QueuedAt: timeOf(b.Queued), Waiting: b.NextID, GoneAt: timeOf(b.GoneAt),
	}
}
