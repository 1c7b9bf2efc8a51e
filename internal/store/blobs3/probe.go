package blobs3

import (
	"context"
	"time"
)

// Probe looks whether a store can be written, read and listed, and objects be removed. It returns by how much its clock is
// behind this machine's, to a second.
func Probe(ctx context.Context, c Config) (behind time.Duration, err error) {
	b, err := openBucket(c)
	if err != nil {
		return 0, err
	}
	at, err := b.now(ctx)
	if err != nil {
		return 0, err
	}
	behind = time.Since(at).Truncate(time.Second)
	for _, err := range b.list(ctx, readersBelow) {
		if err != nil {
			return 0, err
		}
	}
	return behind, nil
}
