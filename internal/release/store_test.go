package release_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	releasetest.RunStore(t, func(*testing.T) release.Store { return releasetest.NewStore() })
}
