package buckettest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/bucket"
	"github.com/tutti-project/tutti/internal/bucket/buckettest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	buckettest.RunStore(t, func(*testing.T) bucket.Store { return buckettest.New() })
}
