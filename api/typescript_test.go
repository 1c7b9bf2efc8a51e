package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
)

var update = flag.Bool("update", false, "write console/src/api anew")

// The console's types of the API are those of the operations.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"types.ts": typesScript(t), "operations.ts": operationsScript(t)} {
		path := filepath.Join("..", "console", "src", "api", name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not current; run `make generate` (-want +got):\n%s", path, diff)
		}
	}
}

const scriptHead = "// Written by `make generate` from the operations in api/; do not edit.\n"

// schema is what of OpenAPI's schemas this generator needs.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	AnyOf      []schema          `json:"anyOf"`
	Items      *schema           `json:"items"`
	Additional *schema           `json:"additionalProperties"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
}

type described struct {
	Name    string `json:"operationId"`
	Answers map[string]struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
	Event      *schema `json:"x-tutti-event"`
	Parameters []struct {
		Name   string `json:"name"`
		In     string `json:"in"`
		Schema schema `json:"schema"`
	} `json:"parameters"`
	Body *struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type document struct {
	Paths      map[string]map[string]described `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

func openAPI(t *testing.T) (d document) {
	t.Helper()
	text, err := api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// script is a schema as a type of TypeScript.
func (s schema) script() string {
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case len(s.AnyOf) > 0:
		words := make([]string, len(s.AnyOf))
		for i, one := range s.AnyOf {
			words[i] = one.script()
		}
		return strings.Join(words, " | ")
	case s.Type == "array":
		item := s.Items.script()
		if strings.Contains(item, " ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case s.Additional != nil:
		return "Record<string, " + s.Additional.script() + ">"
	case s.Type == "integer", s.Type == "number":
		return "number"
	case s.Type == "null", s.Type == "boolean", s.Type == "string":
		return s.Type
	case reflect.DeepEqual(s, schema{}):
		return "unknown"
	}
	panic(fmt.Sprintf("no type is known for %+v", s))
}

// key is the name of a member.
func key(name string, optional bool) string {
	if strings.ContainsAny(name, "-.$@") {
		name = fmt.Sprintf("%q", name)
	}
	if optional {
		name += "?"
	}
	return name
}

func typesScript(t *testing.T) string {
	t.Helper()
	schemas := openAPI(t).Components.Schemas
	var b strings.Builder
	b.WriteString(scriptHead)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		s := schemas[name]
		fmt.Fprintf(&b, "\nexport interface %s {\n", name)
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			fmt.Fprintf(&b, "  %s: %s;\n", key(field, !slices.Contains(s.Required, field)), s.Properties[field].script())
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func operationsScript(t *testing.T) string {
	t.Helper()
	byName := map[string]described{}
	for _, methods := range openAPI(t).Paths {
		for _, one := range methods {
			byName[one.Name] = one
		}
	}
	var types, table strings.Builder
	for _, op := range api.Operations() {
		d := byName[op.Name]
		request := []string{}
		var query []string
		for _, p := range d.Parameters {
			request = append(request, key(p.Name, p.In != "path")+": "+p.Schema.script())
			if p.In == "query" {
				query = append(query, p.Name)
			}
		}
		kind := "{ " + strings.Join(request, "; ") + " }"
		if len(request) == 0 {
			kind = "Record<never, never>"
		}
		if d.Body != nil {
			if body, ok := d.Body.Content["application/json"]; ok {
				kind += " & " + body.Schema.script()
			}
		}
		answer := "void"
		if d.Event != nil {
			answer = d.Event.script()
		} else if content, ok := d.Answers["200"].Content["application/json"]; ok {
			answer = content.Schema.script()
		}
		fmt.Fprintf(&types, "  %q: { request: %s; response: %s };\n", op.Name, kind, answer)
		fmt.Fprintf(&table, "  %q: { method: %q, path: %q, permission: %q, act: %t, query: %s },\n",
			op.Name, op.Method, op.Path, string(op.Permission), op.Kind == api.Act, quoted(query))
	}
	return scriptHead + "import type * as T from './types';\n\n" +
		"/** Requests and answers by the name of the operation; of a stream, the answer is one event. */\nexport interface Operations {\n" +
		qualified(types.String(), slices.Collect(maps.Keys(openAPI(t).Components.Schemas))) + "}\n\n" +
		"export const prefix = '" + api.Prefix + "';\n\n/** Where each operation is, and what it needs. */\nexport const operations: Record<\n  keyof Operations,\n" +
		"  { method: string; path: string; permission: string; act: boolean; query: string[] }\n> = {\n" + table.String() + "};\n"
}

// qualified writes T. before the names of types.
func qualified(text string, names []string) string {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	var b strings.Builder
	word := ""
	flush := func() {
		if known[word] {
			b.WriteString("T.")
		}
		b.WriteString(word)
		word = ""
	}
	for _, r := range text {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			word += string(r)
			continue
		}
		flush()
		b.WriteRune(r)
	}
	flush()
	return b.String()
}

func quoted(words []string) string {
	for i, word := range words {
		words[i] = fmt.Sprintf("%q", word)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
