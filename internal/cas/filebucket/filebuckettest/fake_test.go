package filebuckettest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/cas/filebucket/filebuckettest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	filebuckettest.RunStore(t, func(*testing.T) filebucket.Store { return filebuckettest.New() })
}
