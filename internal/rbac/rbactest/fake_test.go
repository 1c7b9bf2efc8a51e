package rbactest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	rbactest.RunStore(t, func(*testing.T) rbac.Store { return rbactest.New() })
	rbactest.RunAuditStore(t, func(*testing.T) rbac.AuditStore { return rbactest.New() })
}
