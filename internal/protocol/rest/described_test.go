package rest_test

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tutti-project/tutti/api"
)

// schemaOf is the schema of an operation's answer; nil when it has none, or is a stream.
var schemaOf = sync.OnceValue(func() map[string]*jsonschema.Schema {
	text, err := api.OpenAPI()
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", document); err != nil {
		panic(err)
	}
	schemas := map[string]*jsonschema.Schema{}
	for _, op := range api.Operations() {
		if op.Response == nil || op.Streams {
			continue
		}
		path := strings.NewReplacer("~", "~0", "/", "~1").Replace(api.Prefix + op.Path)
		schemas[op.Method+" "+api.Prefix+op.Path] = compiler.MustCompile(
			"openapi.json#/paths/" + path + "/" + strings.ToLower(op.Method) + "/responses/200/content/application~1json/schema")
	}
	schemas["problem"] = compiler.MustCompile("openapi.json#/components/schemas/Problem")
	return schemas
})

// described returns nil when an answer is as its operation is described.
func described(pattern string, w *httptest.ResponseRecorder) error {
	schema := schemaOf()[pattern]
	if w.Code >= 400 {
		schema = schemaOf()["problem"]
	}
	if schema == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}
