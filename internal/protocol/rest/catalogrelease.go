package rest

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
)

// releaseCatalogs prepares catalogs and, unless only that is asked for, releases them.
// Preparing is no act: it gives nobody anything.
func (h *deliveries) releaseCatalogs(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	var request api.CatalogReleaseRequest
	if err := api.Bind(r, &request); err != nil {
		return nil, err
	}
	ctx := r.Context()
	wanted, err := h.releaseOf(ctx, request)
	if err != nil {
		return nil, err
	}
	if !request.DryRun {
		about := fmt.Sprintf("version %s on %s", request.Version, fault.Count(len(wanted.nodes), "node"))
		if err := begin(subject{about}); err != nil {
			return nil, err
		}
	}
	if err := h.mayRelease(ctx, wanted.nodes); err != nil {
		return nil, err
	}
	prepared, err := h.releases.Stage(ctx, wanted.nodes, wanted.environment, request.Version, wanted.ticket)
	if err != nil {
		return nil, err
	}
	answer := api.CatalogReleased{Ticket: wanted.ticket, Digest: string(deliver.PlanDigest(prepared))}
	if request.DryRun {
		return shownRelease(answer, unreleased(prepared)), nil
	}
	if request.Expect != "" && request.Expect != answer.Digest {
		return nil, fault.New(fault.Conflict, "what is ready is not what was shown any more; look again. Nothing was released")
	}
	outcomes, err := h.releases.ReleaseAll(ctx, prepared, deliver.Order{By: fleet.ActorFrom(ctx).Name, Why: request.Why}, wanted.apply)
	if err != nil {
		return nil, err
	}
	return shownRelease(answer, outcomes), nil
}

// wantedRelease is a request that is right.
type wantedRelease struct {
	nodes       []fleet.Certname
	environment fleet.Environment
	apply       deliver.Apply
	ticket      string
}

var ticketForm = regexp.MustCompile(`\Arelease-[0-9a-f-]{36}\z`)

func (h *deliveries) releaseOf(ctx context.Context, request api.CatalogReleaseRequest) (wanted wantedRelease, err error) {
	if request.Version == "" {
		return wanted, fault.New(fault.Invalid, "field version: say which version of the code is released; environment.list and version.list know them")
	}
	if len(request.Why) > maxWhy {
		return wanted, fault.New(fault.Invalid, "field why: at most %d bytes are kept, these are %d", maxWhy, len(request.Why))
	}
	if request.Environment != "" {
		if wanted.environment, err = fleet.ParseEnvironment(request.Environment); err != nil {
			return wanted, err
		}
	}
	if wanted.apply, err = deliver.ParseApply(request.Apply); err != nil {
		return wanted, fault.Wrap(fault.Invalid, err, "field apply: %s", fault.Detail(err))
	}
	switch {
	case request.Ticket == "":
		wanted.ticket = "release-" + uuid.NewString()
	case !ticketForm.MatchString(request.Ticket):
		return wanted, fault.New(fault.Invalid, "field ticket: it is the one of an answer before, not %.80q", request.Ticket)
	default:
		wanted.ticket = request.Ticket
	}
	wanted.nodes, err = h.releaseTargets(ctx, request.Targets)
	return wanted, err
}

// releaseTargets is the nodes that are meant.
func (h *deliveries) releaseTargets(ctx context.Context, t api.JobTargets) ([]fleet.Certname, error) {
	targets, err := targetsOf(t)
	if err != nil {
		return nil, err
	}
	if err := h.roster.checkNodes(ctx, targets.Nodes); err != nil {
		return nil, err
	}
	nodes, err := h.releases.Targets(ctx, targets)
	switch {
	case err != nil:
		return nil, err
	case len(nodes) == 0:
		return nil, fault.New(fault.Invalid, "field targets: no node is meant by them; nothing was released")
	case len(nodes) > job.MaxTargets:
		return nil, fault.New(fault.Invalid, "field targets: at most %d nodes at a time, these are %d", job.MaxTargets, len(nodes))
	}
	return nodes, nil
}

// scopeBatch is how many nodes a condition is asked about at once.
const scopeBatch = 500

// mayRelease returns nil when who asks may release to every one of the nodes.
func (h *deliveries) mayRelease(ctx context.Context, nodes []fleet.Certname) error {
	actor := fleet.ActorFrom(ctx)
	if !rbac.Scoped(actor, fleet.CatalogRelease) {
		return h.gate.allow(ctx, fleet.CatalogRelease, fleet.Object{})
	}
	var denied []fleet.Certname
	var why error
	for len(nodes) > 0 {
		part := make([]fleet.Object, min(len(nodes), scopeBatch))
		for i := range part {
			part[i].Node = nodes[i]
		}
		nodes = nodes[len(part):]
		objects, err := h.gate.known(ctx, actor, fleet.CatalogRelease, part)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := rbac.Allow(actor, fleet.CatalogRelease, object); err != nil {
				why, denied = err, append(denied, object.Node)
			}
		}
	}
	if why == nil {
		return nil
	}
	named, err := h.gate.nameable(ctx, denied)
	if err != nil {
		return err
	}
	return h.gate.explained(ctx, fleet.CatalogRelease, fault.New(fault.Denied, "%s. It is denied for %s%s. Nothing was released",
		strings.TrimSuffix(fault.Detail(why), "."), fault.Count(len(denied), "node"), named))
}

func unreleased(prepared []deliver.Prepared) []deliver.Outcome {
	outcomes := make([]deliver.Outcome, len(prepared))
	for i, p := range prepared {
		outcomes[i] = deliver.Outcome{Prepared: p}
		if p.Standing.Head != nil {
			outcomes[i].Generation = p.Standing.Head.Number
		}
	}
	return outcomes
}

// releasedState is the state of a node that was released to.
const releasedState = "released"

func shownRelease(answer api.CatalogReleased, outcomes []deliver.Outcome) api.CatalogReleased {
	answer.Counts, answer.Nodes = map[string]int{}, make([]api.NodeRelease, len(outcomes))
	for i, o := range outcomes {
		node := api.NodeRelease{
			Node: string(o.Node), State: string(o.State), Environment: string(o.Environment), Version: string(o.Version), Generation: o.Generation, Reason: o.Reason,
		}
		if o.Released {
			node.State = releasedState
		}
		if o.Catalog != nil {
			node.Catalog = string(o.Catalog.Digest)
		}
		if o.Standing.Head != nil {
			node.Before = string(o.Standing.Head.Digest)
		}
		answer.Counts[node.State]++
		answer.Nodes[i] = node
	}
	return answer
}
