package preview

import (
	"context"
	"encoding/hex"
	"iter"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fleet"
)

// comparing is Comparing over package diff.
type comparing struct {
	blobs  cas.Store
	limits deliver.Limits
	groups *diff.Grouper
}

// NewComparing compares catalogs that are stored in blobs. Whoever lacks secret learns nothing from the keys of changes.
func NewComparing(blobs cas.Store, secret []byte, limits deliver.Limits) (Comparing, error) {
	shower := diff.NewShower(catalogBlobs{blobs}, diff.DefaultLimits())
	groups, err := diff.NewGrouper(diff.GrouperConfig{Secret: secret, Shower: shower})
	return &comparing{blobs, limits, groups}, err
}

// catalogBlobs is diff.Blobs.
type catalogBlobs struct{ cas.Store }

// Blob implements diff.Blobs.
func (b catalogBlobs) Blob(ctx context.Context, d fleet.Digest, limit int64) ([]byte, error) {
	return cas.Bytes(ctx, b.Store, d, limit)
}

// Add implements Comparing.
func (c *comparing) Add(ctx context.Context, number uint32, node fleet.Certname, pair Pair) (Verdict, error) {
	before, was, err := c.document(ctx, pair.Base)
	if err != nil {
		return NoDifference, err
	}
	after, left, err := c.document(ctx, pair.Fresh)
	if err != nil {
		return NoDifference, err
	}
	difference, err := diff.Compare(before, after)
	if err != nil {
		return NoDifference, err
	}
	if pair.AcrossEngines {
		difference.AcrossEngines()
	}
	if lost := deliver.Lost(was, left, c.limits); lost != "" {
		c.groups.AddLoss(diff.Node{Number: number, Name: string(node)}, lost, deliver.LostText(lost))
	}
	switch {
	case c.groups.Add(ctx, diff.Node{Number: number, Name: string(node)}, difference):
		return Different, nil
	case difference.Empty():
		return NoDifference, nil
	default:
		return OrderOnly, nil
	}
}

// document reads a catalog, and counts what an agent would apply of it.
func (c *comparing) document(ctx context.Context, d fleet.Digest) (parsed *diff.Catalog, resources int, err error) {
	text, err := cas.Bytes(ctx, c.blobs, d, diff.MaxCatalogBytes)
	if err != nil {
		return nil, 0, err
	}
	if parsed, err = diff.Parse(text); err != nil {
		return nil, 0, err
	}
	resources, err = catalog.CountResources(text)
	return parsed, resources, err
}

// AddSame implements Comparing.
func (c *comparing) AddSame(number uint32, node fleet.Certname) {
	c.groups.AddSame(diff.Node{Number: number, Name: string(node)})
}

// AddFailure implements Comparing.
func (c *comparing) AddFailure(number uint32, node fleet.Certname, why Failure) {
	c.groups.AddError(diff.Node{Number: number, Name: string(node)}, diff.CompileError(why))
}

// Fleet implements Comparing.
func (c *comparing) Fleet(limit int, nameOf func(uint32) string) (api.FleetDifference, error) {
	return c.groups.Fleet(limit, nameOf)
}

// Members implements Comparing.
func (c *comparing) Members(key string) []uint32 {
	raw, err := hex.DecodeString(key)
	if err != nil || len(raw) != len(diff.Key{}) {
		return nil
	}
	return c.groups.Nodes(diff.Key(raw))
}

// Groups implements Comparing.
func (c *comparing) Groups(nameOf func(uint32) string) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		for whole, err := range c.groups.All(nameOf) {
			if !yield(Group{Change: whole.ChangeGroup, Nodes: whole.Numbers}, err) {
				return
			}
		}
	}
}
