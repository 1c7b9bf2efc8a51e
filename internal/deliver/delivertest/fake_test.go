package delivertest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/deliver/delivertest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	delivertest.RunStore(t, func(*testing.T) delivertest.Backend {
		f := delivertest.New()
		return delivertest.Backend{Store: f, Gave: f.Gave, Ran: f.Ran}
	})
}
