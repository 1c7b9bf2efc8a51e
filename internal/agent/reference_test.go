package agent

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
)

var update = flag.Bool("update", false, "write the tables of docs/actions-modules.md anew")

// The page of the built-in modules has a table for each that is made of its description.
func TestReferenceOfModules(t *testing.T) {
	t.Parallel()
	const page = "../../docs/actions-modules.md"
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := BuiltIns()
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{}
	for _, m := range modules {
		tables[m.Name] = table(t, m)
	}
	is := regexp.MustCompile(`(?s)<!-- (\S+): made by make generate -->\n.*?<!-- end -->`).ReplaceAllStringFunc(string(was), func(block string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(block, "<!-- "), ":")
		text := fmt.Sprintf("<!-- %s: made by make generate -->\n%s<!-- end -->", name, tables[name])
		delete(tables, name)
		return text
	})
	for name := range tables {
		t.Errorf("%s has no place for the table of %s", page, name)
	}
	if *update {
		if err := os.WriteFile(page, []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(is, string(was)); diff != "" {
		t.Errorf("%s is not current; run `make generate` (-want +got):\n%s", page, diff)
	}
}

// table is a row for each action.
func table(t *testing.T, m action.Module) string {
	t.Helper()
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "| action | | takes | gives | at most |\n|---|---|---|---|---|\n")
	for _, a := range m.Actions {
		does := a.Description
		if a.ReadOnly {
			does += " (reads only)"
		}
		_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", a.Name, does, fields(t, a.Input, true), fields(t, a.Results, false), fault.Duration(a.Limit()))
	}
	return b.String()
}

func fields(t *testing.T, text []byte, needed bool) string {
	t.Helper()
	schema, err := action.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range schema.Fields() {
		name := "`" + f.Name + "`"
		if needed && f.Required {
			name += "*"
		}
		if needed && f.Enum != nil {
			name += " (" + strings.Join(f.Enum, ", ") + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}
