package inventorytest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	inventorytest.RunStore(t, func(*testing.T) inventorytest.Store { return inventorytest.New() })
}

func TestFakeEnrolments(t *testing.T) {
	t.Parallel()
	inventorytest.RunEnrolments(t, func(*testing.T) inventorytest.EnrolmentStore { return inventorytest.NewEnrolments() })
}
