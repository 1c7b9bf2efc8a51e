package historytest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/action/history/historytest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	historytest.RunStore(t, func(*testing.T) history.Store { return historytest.NewStore() })
}
