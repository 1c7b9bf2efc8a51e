package blobs3test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/blobs3"
)

// grace is the age at which Race has content removed: less than what passes between two uses of it.
const grace = 150 * time.Millisecond

// Race has two servers put content and ask for it, while both remove all that is old. Whoever was told that content is stored may refer to it
// for a while: it must be there, and the store's own files say whether it is.
func (s *Server) Race(t *testing.T, prefix string, servers ...*blobs3.Store) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var removed, relied atomic.Int64
	var sweeping, using sync.WaitGroup
	for _, server := range servers {
		sweeping.Go(func() {
			for ctx.Err() == nil {
				n, _, err := server.Sweep(ctx, func(fleet.Digest) bool { return false }, time.Now().Add(-grace))
				removed.Add(int64(n))
				if err != nil && ctx.Err() == nil {
					t.Errorf("sweep: %v", err)
					return
				}
			}
		})
		for range 3 {
			using.Go(func() {
				for range 200 {
					content := fmt.Sprint("content ", rand.IntN(300)) //nolint:gosec // any will do
					began, d := time.Now(), fleet.DigestOf([]byte(content))
					stored, err := putOrAsk(ctx, server, d, content)
					if err != nil {
						t.Error(err)
						return
					}
					_, err = os.Stat(s.Object(prefix + "/blobs/" + string(d[:2]) + "/" + string(d)))
					if !stored || time.Since(began) >= grace {
						continue
					}
					if relied.Add(1); errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%q is said to be stored, and is not there", content)
					}
				}
			})
		}
	}
	using.Wait()
	stop()
	sweeping.Wait()
	t.Logf("%d blobs were removed, %d were relied upon", removed.Load(), relied.Load())
	if removed.Load() == 0 || relied.Load() == 0 {
		t.Errorf("%d blobs were removed, %d were relied upon: this race proves nothing", removed.Load(), relied.Load())
	}
}

// putOrAsk stores content, or asks whether it is stored.
func putOrAsk(ctx context.Context, server *blobs3.Store, d fleet.Digest, content string) (stored bool, err error) {
	if rand.IntN(2) == 0 { //nolint:gosec // either will do
		missing, err := server.Missing(ctx, []fleet.Digest{d})
		return len(missing) == 0, err
	}
	return true, server.PutAs(ctx, d, strings.NewReader(content))
}
