package catalog_test

import (
	"encoding/json"
	"fmt"

	"github.com/tutti-project/tutti/internal/catalog"
)

// A catalog is stored without its stamp and served with the stamp of the
// compilation that it comes from.
func ExampleRender() {
	document, _, err := catalog.Normalise(json.RawMessage(`{"version": 1767225600, "name": "web-1", "resources": [ {"type":"Notify", "title":"hello"} ]}`), nil)
	if err != nil {
		panic(err)
	}
	wire, err := catalog.Render(document, catalog.Stamp{Version: "0a1b2c3d", UUID: "6d5e9f0a-1111-4222-8333-444455556666", Static: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(document))
	fmt.Println(string(wire))
	// Output:
	// {"exported":[],"catalog":{"name":"web-1","resources":[{"title":"hello","type":"Notify"}]}}
	// {"version":"0a1b2c3d","code_id":"0a1b2c3d","catalog_uuid":"6d5e9f0a-1111-4222-8333-444455556666","name":"web-1","resources":[{"title":"hello","type":"Notify"}]}
}
