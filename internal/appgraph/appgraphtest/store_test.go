package appgraphtest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/appgraph/appgraphtest"
)

func TestTheFakeIsAStore(t *testing.T) {
	t.Parallel()
	appgraphtest.RunStore(t, func(_ *testing.T, catalogs []appgraphtest.Catalog) appgraph.Store {
		return appgraphtest.Store(catalogs)
	})
}
