package pkitest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	pkitest.RunStore(t, func(*testing.T) pki.Store { return pkitest.NewMemory() })
}
