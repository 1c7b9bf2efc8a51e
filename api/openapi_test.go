package api

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What the document says of parameters must be what paths say, and each of its references must lead somewhere.
func TestTheDescriptionIsWhole(t *testing.T) {
	t.Parallel()
	text, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler() // of the draft 2020-12, as OpenAPI 3.1 has it
	if err := compiler.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Parameters  []struct {
				Name, In string
				Required bool
			}
			Responses map[string]any
		}
		Components map[string]map[string]any
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, found := range regexp.MustCompile(`"\$ref": "#/components/(\w+)/(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		used[found[1]+"/"+found[2]] = true
		if d.Components[found[1]][found[2]] == nil {
			t.Errorf("%s leads nowhere", found[0])
		}
	}
	for name := range d.Components["schemas"] {
		if !used["schemas/"+name] {
			t.Errorf("nothing has a %s", name)
		}
		if _, err := compiler.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s is no schema: %v", name, err)
		}
	}
	described := 0
	for _, methods := range d.Paths {
		described += len(methods)
	}
	if all := Operations(); described != len(all) {
		t.Errorf("%d operations are described, there are %d", described, len(all))
	}
	for _, op := range Operations() {
		one := d.Paths[Prefix+op.Path][strings.ToLower(op.Method)]
		if one.OperationID != op.Name || len(one.Responses) != 2 {
			t.Errorf("%s is described as %q, with %d answers", op.Name, one.OperationID, len(one.Responses))
		}
		inPath := 0
		for _, p := range one.Parameters {
			if p.In == "path" {
				inPath++
			}
			if (p.In == "path") != strings.Contains(op.Path, "{"+p.Name+"}") || p.Required != (p.In == "path") {
				t.Errorf("%s: %+v does not go with %s", op.Name, p, op.Path)
			}
		}
		if inPath != strings.Count(op.Path, "{") {
			t.Errorf("%s: %d parameters are in the path %s", op.Name, inPath, op.Path)
		}
	}
}
