package scheduletest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/agent/schedule/scheduletest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	s := &scheduletest.Store{}
	scheduletest.StoreSuite(t, func() schedule.Store { return s })
}

func TestMachine(t *testing.T) {
	t.Parallel()
	m := &scheduletest.Machine{}
	scheduletest.RunnerSuite(t, func() schedule.Runner { return m })
}
