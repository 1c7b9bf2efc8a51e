package policy_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/policy/policytest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	policytest.RunStore(t, func(*testing.T) policy.Store { return policytest.NewStore() })
}
