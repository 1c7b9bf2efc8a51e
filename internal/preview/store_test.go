package preview_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	previewtest.RunStore(t, func(*testing.T) preview.Store { return previewtest.NewStore() })
}
