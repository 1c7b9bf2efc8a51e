package cas_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// listed is content under digests that need not be its own; nil: it was listed, and is gone.
type listed map[fleet.Digest][]byte

func (l listed) Each(_ context.Context, fn func(d fleet.Digest, size int64) error) error {
	for _, d := range slices.Sorted(maps.Keys(l)) {
		if err := fn(d, int64(len(l[d]))); err != nil {
			return err
		}
	}
	return nil
}

func (l listed) Open(d fleet.Digest) (io.ReadCloser, error) {
	if l[d] == nil {
		return nil, fault.New(fault.NotFound, "blob %s is not there", d.Short())
	}
	return io.NopCloser(bytes.NewReader(l[d])), nil
}

// A copy has all that is right, also of batches in which something is wrong, and names what is damaged.
func TestACopyLeavesOutWhatIsDamaged(t *testing.T) {
	t.Parallel()
	from := listed{}
	for i := range 600 {
		content := fmt.Appendf(nil, "content %03d", i)
		from[fleet.DigestOf(content)] = content
	}
	right := maps.Clone(from)
	damaged, gone := fleet.DigestOf([]byte("damaged")), fleet.DigestOf([]byte("gone"))
	from[damaged], from[gone] = []byte("tampered"), nil
	to := castest.New()
	if _, _, err := to.Put(t.Context(), bytes.NewReader([]byte("content 007"))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []cas.Copied{
		{Blobs: 602, New: 599, Bytes: 599 * 11, Damaged: []fleet.Digest{damaged}},
		{Blobs: 602, Damaged: []fleet.Digest{damaged}},
	} {
		last := int64(0)
		got, err := cas.Copy(t.Context(), from, to, func(done int64) { last = done })
		if err != nil || last != 602 {
			t.Errorf("%v, the last progress was %d", err, last)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for d, content := range from {
		got, err := cas.Bytes(t.Context(), to, d, 100)
		if _, is := right[d]; is && (err != nil || !bytes.Equal(got, content)) || !is && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %q, %v", d.Short(), got, err)
		}
	}
}

// A target that takes nothing ends a copy: nothing counts as copied.
func TestACopyToAFullStore(t *testing.T) {
	t.Parallel()
	content := []byte("content")
	full := fullStore{castest.New()}
	got, err := cas.Copy(t.Context(), listed{fleet.DigestOf(content): content}, full, func(int64) {})
	if !fault.Is(err, fault.Unavailable) || got.New != 0 || len(got.Damaged) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

type fullStore struct{ cas.Store }

func (fullStore) PutAs(context.Context, fleet.Digest, io.Reader) error {
	return fault.New(fault.Unavailable, "the disk is full")
}
