package memotest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/job/memo"
	"github.com/tutti-project/tutti/internal/job/memo/memotest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	memotest.RunStore(t, func(*testing.T) memo.Store { return memotest.NewStore() })
}
