package castest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	castest.RunStore(t, func(*testing.T) cas.Store { return castest.New() })
}

func TestMarksOfOneProcess(t *testing.T) {
	t.Parallel()
	castest.RunMarks(t, func(*testing.T) cas.Marks { return cas.NewMarks() })
}
