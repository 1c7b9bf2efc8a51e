package cas

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Lister is stored content that can be read one after the other. No blob goes away meanwhile.
type Lister interface {
	// Each calls fn with every blob that is there now.
	Each(ctx context.Context, fn func(d fleet.Digest, size int64) error) error
	// Open opens one, without looking whether it has its digest; NotFound.
	Open(d fleet.Digest) (io.ReadCloser, error)
}

// Copied is what became of a copy.
type Copied struct {
	Blobs   int64          `json:"blobs"`   // that the source has
	New     int64          `json:"new"`     // of these, that were copied; the others were there
	Bytes   int64          `json:"bytes"`   // of the new ones
	Damaged []fleet.Digest `json:"damaged"` // that the source has wrong: they are left out
}

// copyBatch is how many blobs are asked for together.
const copyBatch = 256

// Copy has one store have all that another one has. Each blob is compared with its digest on the way. A copy that is begun again
// goes on where it was.
func Copy(ctx context.Context, from Lister, to Store, progress func(done int64)) (Copied, error) {
	c := copying{from: from, to: to, result: Copied{Damaged: []fleet.Digest{}}}
	sizes := map[fleet.Digest]int64{}
	flush := func() error {
		err := c.batch(ctx, sizes)
		clear(sizes)
		progress(c.result.Blobs)
		return err
	}
	err := from.Each(ctx, func(d fleet.Digest, size int64) error {
		c.result.Blobs++
		if sizes[d] = size; len(sizes) < copyBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return c.result, err
	}
	return c.result, flush()
}

type copying struct {
	from   Lister
	to     Store
	result Copied
}

// batch copies what is missing together, and one by one once a blob is wrong: that one is left out.
func (c *copying) batch(ctx context.Context, sizes map[fleet.Digest]int64) error {
	missing, err := c.to.Missing(ctx, slices.Sorted(maps.Keys(sizes)))
	if err != nil || len(missing) == 0 {
		return err
	}
	sources := make([]Source, 0, len(missing))
	for _, d := range missing {
		sources = append(sources, Source{Digest: d, Open: func() (io.ReadCloser, error) { return c.from.Open(d) }})
	}
	switch err = PutAll(ctx, c.to, slices.Values(sources)); {
	case err == nil:
		c.count(sizes, missing...)
		return nil
	case !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.NotFound):
		return err
	}
	for _, source := range sources {
		switch err := putSource(ctx, c.to, source); {
		case err == nil:
			c.count(sizes, source.Digest)
		case fault.Is(err, fault.Invalid):
			c.result.Damaged = append(c.result.Damaged, source.Digest)
		case !fault.Is(err, fault.NotFound): // it was set aside just now
			return err
		}
	}
	return nil
}

func (c *copying) count(sizes map[fleet.Digest]int64, ds ...fleet.Digest) {
	for _, d := range ds {
		c.result.New++
		c.result.Bytes += sizes[d]
	}
}

// Lacking is what one store does not have of another one, or has with another size. Both are listed anew.
func Lacking(ctx context.Context, from, to Lister) ([]fleet.Digest, error) {
	left := map[fleet.Digest]int64{}
	if err := from.Each(ctx, func(d fleet.Digest, size int64) error { left[d] = size; return nil }); err != nil {
		return nil, err
	}
	err := to.Each(ctx, func(d fleet.Digest, size int64) error {
		if left[d] == size {
			delete(left, d)
		}
		return nil
	})
	return slices.Sorted(maps.Keys(left)), err
}
