package usagetest

import "testing"

func TestFake(t *testing.T) {
	t.Parallel()
	RunStore(t, new(Fake))
}
