package routinetest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/routine"
	"github.com/tutti-project/tutti/internal/routine/routinetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	s := &routinetest.Store{}
	routinetest.StoreSuite(t, func() routine.Store { return s })
}

func TestMachine(t *testing.T) {
	t.Parallel()
	m := &routinetest.Machine{}
	routinetest.RunnerSuite(t, func() routine.Runner { return m })
}
