package leasetest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/lease/leasetest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	leasetest.Run(t, func(*testing.T) leasetest.World { return leasetest.New() })
}

func TestFakeRoll(t *testing.T) {
	t.Parallel()
	leasetest.RunRoll(t, func(*testing.T) lease.Roll { return leasetest.NewRoll() })
}
