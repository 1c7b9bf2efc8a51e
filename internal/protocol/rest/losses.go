package rest

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// listLosses lists what is held, and what was given with a warning if that is asked for.
func (h *deliveries) listLosses(ctx context.Context, request api.CatalogLossRequest) (api.List[api.CatalogLoss], error) {
	list := api.List[api.CatalogLoss]{Items: []api.CatalogLoss{}}
	var f deliver.LossFilter
	if !request.Warned {
		f.Ruling = deliver.Hold
	}
	if request.Environment != "" {
		env, err := fleet.ParseEnvironment(request.Environment)
		if err != nil {
			return list, err
		}
		f.Environment = env
	}
	losses, err := h.losses.Losses(ctx, f)
	if err != nil {
		return list, err
	}
	losses, err = seen(ctx, h.gate, fleet.CatalogRead, losses, func(l deliver.Loss) fleet.Object {
		return fleet.Object{Node: l.Node}
	})
	for _, l := range losses {
		if strings.HasPrefix(string(l.Catalog.Version), strings.ToLower(request.Version)) {
			list.Items = append(list.Items, lossOf(l))
		}
	}
	return list, err
}

func lossOf(l deliver.Loss) api.CatalogLoss {
	return api.CatalogLoss{
		Node: string(l.Node), Held: l.Ruling == deliver.Hold, Catalog: string(l.Catalog.Digest), Environment: string(l.Catalog.Environment),
		Version: string(l.Catalog.Version), Before: string(l.Kept.Digest), EnvironmentThen: string(l.Kept.Environment), VersionThen: string(l.Kept.Version),
		Was: l.Was, Left: l.Left, At: l.At.UTC(), Text: l.Story(),
	}
}

// lossNow is the open loss of a node in live mode; nil without one.
func (h *deliveries) lossNow(ctx context.Context, node fleet.Certname) (*api.CatalogLoss, error) {
	losses, err := h.losses.Losses(ctx, deliver.LossFilter{Nodes: []fleet.Certname{node}})
	if err != nil || len(losses) == 0 {
		return nil, err
	}
	shown := lossOf(losses[0])
	return &shown, nil
}

// maxLossTexts is how many losses the status of an environment's code tells in words.
const maxLossTexts = 5

// addLosses adds to an environment's status what is held and what was given with a warning. standing are the nodes whose newest catalog
// stands for the version, by name: what others lost, an earlier version took.
func (h *deliveries) addLosses(ctx context.Context, env fleet.Environment, standing []fleet.Certname, out *api.CodeStatus) error {
	losses, err := h.losses.Losses(ctx, deliver.LossFilter{Environment: env})
	for _, l := range losses {
		if _, stands := slices.BinarySearch(standing, l.Node); !stands {
			continue
		}
		if l.Ruling == deliver.Warn {
			out.Warned++
		}
		if len(out.Losses) < maxLossTexts {
			out.Losses = append(out.Losses, string(l.Node)+": "+l.Told())
		}
	}
	return err
}

func (h *deliveries) letNode(ctx context.Context, request api.NameRequest) (api.CatalogLet, error) {
	node, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.CatalogLet{}, err
	}
	if err := h.roster.checkNodes(ctx, []fleet.Certname{node}); err != nil {
		return api.CatalogLet{}, err
	}
	nodes, err := h.losses.LetGo(ctx, deliver.Let{Node: node, By: fleet.ActorFrom(ctx).Name})
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.NotFound, err, "no catalog of %s is held; what is held lists: tutti catalog held", node)
	}
	return letOf(nodes), err
}

func letOf(nodes []fleet.Certname) api.CatalogLet {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = string(node)
	}
	return api.CatalogLet{Nodes: names}
}

// minVersion is how many digits of a version are enough.
const minVersion = 6

// letVersion lets go what is held of a version, which is named by what is held.
func (h *deliveries) letVersion(ctx context.Context, request api.CatalogLetRequest) (api.CatalogLet, error) {
	prefix := strings.ToLower(request.Version)
	if len(prefix) < minVersion {
		return api.CatalogLet{}, fault.New(fault.Invalid, "field version: %d digits of a version at least, not %.40q", minVersion, request.Version)
	}
	losses, err := h.losses.Losses(ctx, deliver.LossFilter{Ruling: deliver.Hold})
	if err != nil {
		return api.CatalogLet{}, err
	}
	var versions []fleet.Digest
	for _, l := range losses {
		if v := l.Catalog.Version; strings.HasPrefix(string(v), prefix) && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	switch len(versions) {
	case 0:
		return api.CatalogLet{}, fault.New(fault.NotFound, "no catalog of version %.64s is held; what is held lists: tutti catalog held", prefix)
	case 1:
	default:
		return api.CatalogLet{}, fault.New(fault.Invalid, "field version: %.64s is the beginning of %s of which catalogs are held; give more digits",
			prefix, fault.Count(len(versions), "version"))
	}
	nodes, err := h.losses.LetGo(ctx, deliver.Let{Version: versions[0], By: fleet.ActorFrom(ctx).Name})
	return letOf(nodes), err
}
