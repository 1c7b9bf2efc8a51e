package rest

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// maxComparing is how many pairs of catalogs are held in memory and compared at
// once; others wait.
const maxComparing = 2

// differences compares catalogs, a few at the same time.
type differences struct {
	gate      *gate
	blobs     cas.Store
	catalogs  inventory.CatalogStore
	comparing chan struct{} // has room for as many catalogs as are compared at once
}

func (h *differences) bindings() []binding {
	return []binding{
		answer(api.CatalogDiff, h.diffCatalogs),
	}
}

// diffCatalogs compares a node's newest catalog with another one. The permission for
// the node was asked for before; here it is for the other side.
func (h *differences) diffCatalogs(ctx context.Context, request api.CatalogDiffRequest) (api.CatalogDifference, error) {
	var none api.CatalogDifference
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return none, err
	}
	other, err := h.otherSide(ctx, request)
	if err != nil {
		return none, err
	}
	done, err := h.turnToCompare(ctx)
	if err != nil {
		return none, err
	}
	defer done()
	before, old, err := h.newestOf(ctx, name)
	if err != nil {
		return none, err
	}
	after, now, err := other(ctx)
	if err != nil {
		return none, err
	}
	difference, err := diff.Compare(before, after)
	if err != nil {
		return none, err
	}
	answer := diff.NewShower(blobReader{h.blobs}, diff.DefaultLimits()).Show(ctx, difference)
	answer.Old, answer.New = old, now
	return answer, ctx.Err()
}

// turnToCompare waits until catalogs may be held in memory and compared; done gives the turn back.
func (h *differences) turnToCompare(ctx context.Context) (done func(), err error) {
	select {
	case h.comparing <- struct{}{}:
		return func() { <-h.comparing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// side reads one catalog, and says what is known of it.
type side func(context.Context) (*diff.Catalog, api.CatalogSide, error)

// otherSide decides what is compared with, and whether who asks may see it.
func (h *differences) otherSide(ctx context.Context, request api.CatalogDiffRequest) (side, error) {
	given := 0
	for _, there := range []bool{request.Node != "", request.Digest != "", len(request.Document) > 0} {
		if there {
			given++
		}
	}
	if given != 1 {
		return nil, fault.New(fault.Invalid, "exactly one of node, digest and document must be given, not %d of them", given)
	}
	switch {
	case request.Node != "":
		name, err := fleet.ParseCertname(request.Node)
		if err != nil {
			return nil, err
		}
		read := func(ctx context.Context) (*diff.Catalog, api.CatalogSide, error) { return h.newestOf(ctx, name) }
		return read, h.gate.allow(ctx, fleet.CatalogRead, fleet.Object{Node: name})
	case request.Digest != "":
		digest, err := fleet.ParseDigest(request.Digest)
		if err != nil {
			return nil, err
		}
		// It may be of any node.
		read := func(ctx context.Context) (*diff.Catalog, api.CatalogSide, error) { return h.storedAs(ctx, digest) }
		return read, h.gate.allow(ctx, fleet.CatalogRead, fleet.Object{})
	default:
		return func(context.Context) (*diff.Catalog, api.CatalogSide, error) { return sentCatalog(request.Document) }, nil
	}
}

// newestOf reads the newest catalog of a node.
func (h *differences) newestOf(ctx context.Context, name fleet.Certname) (*diff.Catalog, api.CatalogSide, error) {
	known, err := h.catalogs.Catalog(ctx, name)
	if err != nil {
		return nil, api.CatalogSide{}, err
	}
	if known.Received {
		return nil, api.CatalogSide{},
			fault.New(fault.NotFound, "the catalog of %s was compiled by %s and is not stored here, only its resources are: it cannot be compared", name, known.Producer)
	}
	catalog, err := h.document(ctx, known.Digest)
	if err != nil {
		return nil, api.CatalogSide{}, err
	}
	return catalog, api.CatalogSide{
		Name: string(name), Environment: string(known.Environment), Digest: string(known.Digest), Version: known.ConfigVersion, CompiledAt: timeOf(known.CompiledAt),
	}, nil
}

// storedAs reads a stored catalog. Only what a row knows as a catalog is one: other
// blobs are none of the caller's business.
func (h *differences) storedAs(ctx context.Context, digest fleet.Digest) (*diff.Catalog, api.CatalogSide, error) {
	known, err := h.catalogs.CatalogDigests(ctx)
	if err != nil {
		return nil, api.CatalogSide{}, err
	}
	if !slices.Contains(known, digest) {
		return nil, api.CatalogSide{}, fault.New(fault.NotFound, "no catalog %s is stored", digest.Short())
	}
	catalog, err := h.document(ctx, digest)
	if err != nil {
		return nil, api.CatalogSide{}, err
	}
	return catalog, api.CatalogSide{Name: catalog.Name(), Environment: catalog.Environment(), Digest: string(digest)}, nil
}

func (h *differences) document(ctx context.Context, digest fleet.Digest) (*diff.Catalog, error) {
	text, err := cas.Bytes(ctx, h.blobs, digest, diff.MaxCatalogBytes)
	if err != nil {
		return nil, err
	}
	return diff.Parse(text)
}

func sentCatalog(document []byte) (*diff.Catalog, api.CatalogSide, error) {
	catalog, err := diff.ParseSent(document)
	if err != nil {
		return nil, api.CatalogSide{}, err
	}
	return catalog, api.CatalogSide{Name: catalog.Name(), Environment: catalog.Environment()}, nil
}

// blobReader is diff.Blobs.
type blobReader struct{ cas.Store }

// Blob implements diff.Blobs.
func (b blobReader) Blob(ctx context.Context, d fleet.Digest, limit int64) ([]byte, error) {
	return cas.Bytes(ctx, b.Store, d, limit)
}
