package compiletest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
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
			Backend: compiletest.Backend{Queue: q, History: q, SetFacts: q.SetFacts}, Reusables: q.Reusables, Gave: func(compile.Compilation) {},
		}
	})
}

func TestVerifications(t *testing.T) {
	t.Parallel()
	compiletest.RunVerifications(t, func(*testing.T) (compiletest.ReuseBackend, compile.Verifications) {
		q := compiletest.NewQueue()
		return compiletest.ReuseBackend{
			Backend: compiletest.Backend{Queue: q, History: q, SetFacts: q.SetFacts}, Reusables: q.Reusables, Gave: func(compile.Compilation) {},
		}, q.Verifications
	})
}

func TestWants(t *testing.T) {
	t.Parallel()
	compiletest.RunWants(t, func(*testing.T) compiletest.WantsBackend {
		q := compiletest.NewQueue()
		return compiletest.WantsBackend{
			ReuseBackend: compiletest.ReuseBackend{
				Backend: compiletest.Backend{Queue: q, History: q, SetFacts: q.SetFacts}, Reusables: q.Reusables, Gave: func(compile.Compilation) {},
			},
			Wants: q.Wants, Standings: q.Wants, Readings: q.Wants, Note: q.Note, Hold: func(c compile.Compilation) { q.SetHeld(c.Node, true) },
			Home: func(node fleet.Certname, env fleet.Environment) {
				q.SetHome(node, env)
				q.SetFacts(node, 1)
			},
		}
	})
}
