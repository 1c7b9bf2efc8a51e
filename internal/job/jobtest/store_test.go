package jobtest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	jobtest.RunStore(t, func(*testing.T) job.Store { return jobtest.NewStore() })
}
