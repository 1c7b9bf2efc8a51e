package rbactest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	rbactest.RunTokenStore(t, func(*testing.T) rbac.TokenStore { return rbactest.New() })
}
