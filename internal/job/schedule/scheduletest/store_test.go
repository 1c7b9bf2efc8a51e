package scheduletest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/schedule/scheduletest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	scheduletest.RunStore(t, func(*testing.T) schedule.Store { return scheduletest.NewStore() })
}
