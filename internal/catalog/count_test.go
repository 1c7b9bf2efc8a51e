package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/tutti-project/tutti/internal/catalog"
)

func TestCountResources(t *testing.T) {
	t.Parallel()
	document, _, err := catalog.Normalise(json.RawMessage(`{"name":"a","resources":[{"type":"Stage","title":"main"},{"type":"Class","title":"Main"},
			{"type":"Notify","title":"Class","parameters":{"type":"Stage","exported":true}},{"type":"Classy","title":"one","exported":false},
			{"type":"Host","title":"own","exported":true},{"type":"User","title":"v","virtual":true}],"edges":[],"classes":["main"]}`),
		json.RawMessage(`[{"type":"Host","title":"offered","exported":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := catalog.CountResources(document); n != 2 || err != nil {
		t.Errorf("counted %d, %v; want the notify and the classy", n, err)
	}
	empty, _, err := catalog.Normalise(json.RawMessage(`{"name":"a","resources":[{"type":"Stage","title":"main"},{"type":"Class","title":"Main"}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := catalog.CountResources(empty); n != 0 || err != nil {
		t.Errorf("counted %d, %v in a catalog without resources", n, err)
	}
}
