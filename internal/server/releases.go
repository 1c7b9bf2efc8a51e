package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/event/trace"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/store/sql"
	"github.com/tutti-project/tutti/internal/target"
)

// openReleases wires the release core to its neighbours.
func (p *parts) openReleases() {
	p.releases = release.NewService(release.Config{
		Store:    trace.Releases{Store: p.store.Releases, Recorder: p.recorder},
		Previews: releasePreviews{p.previews, release.Catalogs{Rows: p.store.Queue, Inputs: p.store.Reusables, Trust: p.trust, Reuser: p.reuser}},
		Delivery: release.Delivered{Given: givenAndReported{p.store.Deliveries, p.store.Releases, p.store.Reports}, Deliver: p.deliver},
		Runs:     release.Jobs{Jobs: p.jobs, ByKey: p.store.Jobs.JobByKey},
		Resolver: releaseTargets{p.resolver},
		Gate:     release.Policies{Previews: p.judge, Policies: p.policies},
		HasRole:  roles{p.store.Access}.held,
		Relay:    p.relay,
		Log:      p.log.Logger,
	})
}

// roles tells which roles users have.
type roles struct{ users *sql.Access }

// held says whether somebody may approve for a role: they have it, or may do everything.
func (r roles) held(ctx context.Context, actor fleet.Actor, role string) (bool, error) {
	if rbac.Allow(actor, fleet.Everything, fleet.Object{}) == nil {
		return true, nil
	}
	user, err := r.users.User(ctx, actor.Name)
	if fault.Is(err, fault.NotFound) {
		return false, nil // nobody that has roles
	}
	return slices.Contains(user.Roles, role) && !actor.Narrowed, err
}

// releasePreviews is release.Previews.
type releasePreviews struct {
	previews *preview.Service
	release.Catalogs
}

// Preview implements release.Previews.
func (d releasePreviews) Preview(ctx context.Context, id int64) (release.Preview, error) {
	p, err := d.previews.Preview(ctx, id)
	return release.Preview{
		ID:          p.ID,
		Environment: p.Environment,
		Version:     p.Version,
		Commit:      p.Commit,
		State:       string(p.State),
		Ready:       p.State == preview.Ready,
	}, err
}

// Shares implements release.Previews.
func (d releasePreviews) Shares(ctx context.Context, id int64, behind, n int) ([]release.Share, error) {
	rows, err := d.previews.Shares(ctx, id, preview.SharePage{From: uint32(behind), Limit: n}) //nolint:gosec // bounded by the preview
	shares := make([]release.Share, len(rows))
	for i, row := range rows {
		shares[i] = release.Share{
			Place:       int(row.Number) + 1,
			Node:        row.Node,
			Same:        row.State == preview.Same,
			Base:        row.Base,
			Fresh:       row.Fresh,
			Compilation: row.Compilation,
		}
		if row.State == preview.Failed || row.State == preview.Unable {
			shares[i].Failure = cmp.Or(row.Failure.Message, string(row.State))
		}
	}
	return shares, err
}

// Again implements release.Previews.
func (d releasePreviews) Again(ctx context.Context, actor fleet.Actor, p release.Preview, nodes []fleet.Certname) (int64, error) {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = string(node)
	}
	made, err := d.previews.Create(ctx, actor, preview.Order{
		Environment: p.Environment,
		Version:     p.Version,
		Commit:      p.Commit,
		Targets:     api.JobTargets{Nodes: names},
		InWords:     "what is superseded of another preview",
	})
	return made.ID, err
}

// releaseTargets is release.Resolver.
type releaseTargets struct{ target.Resolver }

// Resolve implements release.Resolver. Releases name no applications.
func (t releaseTargets) Resolve(ctx context.Context, wanted api.JobTargets) ([]fleet.Certname, error) {
	wanted.App = ""
	return t.Named(ctx, wanted)
}
