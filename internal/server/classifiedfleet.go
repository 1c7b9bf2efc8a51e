package server

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
	classifierapi "github.com/tutti-project/tutti/internal/protocol/classifier"
	"github.com/tutti-project/tutti/internal/target"
)

// classifiedFleet is what the classifier's API asks for.
type classifiedFleet struct {
	target.Groups
	groups *classify.Service
	rows   code.Store
}

// Known is classifierapi.Fleet.
func (d classifiedFleet) Known(ctx context.Context, name fleet.Certname) (facts, trusted json.RawMessage, err error) {
	return d.groups.Documents(ctx, name, classify.Needs{Facts: true, Trusted: true})
}

// Deployed is classifierapi.Fleet.
func (d classifiedFleet) Deployed(ctx context.Context) ([]classifierapi.Environment, error) {
	versions, err := d.rows.Environments(ctx)
	deployed := make([]classifierapi.Environment, len(versions))
	for i, v := range versions {
		deployed[i] = classifierapi.Environment{Name: v.Environment, At: v.DeployedAt}
	}
	return deployed, err
}
