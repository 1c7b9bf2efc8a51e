package codetest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	codetest.RunStore(t, func(*testing.T) code.Store { return codetest.New() })
}
