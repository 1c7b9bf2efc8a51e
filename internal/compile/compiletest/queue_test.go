package compiletest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	compiletest.RunQueue(t, func(*testing.T) compiletest.Backend {
		q := compiletest.NewQueue()
		return compiletest.Backend{Queue: q, History: q, SetFacts: q.SetFacts}
	})
}

func TestReusables(t *testing.T) {
	t.Parallel()
	compiletest.RunReusables(t, func(*testing.T) compiletest.ReuseBackend {
		q := compiletest.NewQueue()
		return compiletest.ReuseBackend{
			Backend: compiletest.Backend{Queue: q, History: q, SetFacts: q.SetFacts}, Reusables: q, Gave: func(compile.Compilation) {},
		}
	})
}
