package blobdir

import (
	"context"
	"io"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Fill implements cas.Filler. A blob that is not verified yet goes the way of
// Open, which does that.
func (s *Store) Fill(ctx context.Context, d fleet.Digest, buf []byte) (int64, error) {
	if _, err := fleet.ParseDigest(string(d)); err != nil {
		return 0, err
	}
	size, known, err := s.fillKnown(d, buf)
	if known || err != nil {
		return size, s.diskFault(err)
	}
	blob, err := s.Open(ctx, d)
	if err != nil {
		return 0, err
	}
	defer func() { _ = blob.Close() }()
	if size = blob.Size(); size > int64(len(buf)) {
		return size, nil
	}
	if _, err := io.ReadFull(blob, buf[:size]); err != nil {
		return 0, s.diskFault(err)
	}
	return size, nil
}
