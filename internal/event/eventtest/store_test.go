package eventtest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/event/eventtest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	eventtest.RunStore(t, func(*testing.T) eventtest.Backend { return eventtest.Fake() })
}
