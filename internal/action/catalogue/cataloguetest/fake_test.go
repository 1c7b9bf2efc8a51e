package cataloguetest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/action/catalogue/cataloguetest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	cataloguetest.RunStore(t, func(*testing.T) catalogue.Store { return cataloguetest.NewStore() })
}
