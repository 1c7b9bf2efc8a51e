package classifytest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/classify/classifytest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	classifytest.RunStore(t, func(*testing.T) classify.Store { return classifytest.New() })
}
