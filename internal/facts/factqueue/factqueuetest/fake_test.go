package factqueuetest

import "testing"

func TestFake(t *testing.T) {
	t.Parallel()
	RunStore(t, func(*testing.T) Backend {
		f := NewFake()
		return Backend{Store: f, Inventory: f}
	})
}
