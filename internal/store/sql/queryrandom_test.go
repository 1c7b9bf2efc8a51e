package sql

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// TestRandomQueriesGiveWhatTheOracleGives asks for what nobody thought of.
func TestRandomQueriesGiveWhatTheOracleGives(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		o := queryFleet(t, s)
		rapid.Check(t, func(r *rapid.T) {
			q := &pql.Query{Entity: rapid.SampledFrom(randomEntities).Draw(r, "entity")}
			q.Where = randomExpr(r, q.Entity, 3)
			q.Columns = randomColumns(r, q.Entity)
			c, err := pql.Check(q)
			if err != nil {
				r.Fatalf("%s: %v", q, err)
			}
			var got []map[string]any
			err = s.Queries.Ask(t.Context(), inventory.Question{Query: c}, func(row json.RawMessage) error {
				var m map[string]any
				got = append(got, m)
				return json.Unmarshal(row, &got[len(got)-1])
			})
			if err != nil {
				r.Fatalf("%s: %v", q, err)
			}
			a, b := lines(t, o.answer(q)), lines(t, got)
			slices.Sort(a)
			slices.Sort(b)
			if diff := cmp.Diff(a, b); diff != "" {
				r.Fatalf("%s (-oracle +store):\n%s", q, diff)
			}
			for name, read := range map[string]func() (*pql.Query, error){
				"PQL": func() (*pql.Query, error) { return pql.Parse(q.String()) },
				"AST": func() (*pql.Query, error) { return pql.ParseAST(q.AST(), "") },
			} {
				back, err := read()
				if err != nil || back.AST() != q.AST() {
					r.Fatalf("%s comes back from %s as %v, %v", q, name, back, err)
				}
			}
		})
	})
}

// randomEntities are those that PQL can name and that hold data.
var randomEntities = []string{
	"nodes", "facts", "fact_contents", "fact_paths", "factsets", "inventory", "catalogs", "resources", "collected", "edges", "reports", "events", "environments",
	"agents", "modules",
}

// leaves into which random paths lead.
var randomPaths = map[string][]string{
	"facts":      {"os.family", "uptime", "none", "nope", "processors.models[1]", "virtual", "os", "mem"},
	"trusted":    {"extensions.pp_role", "certname", "nope"},
	"parameters": {"ensure", "mode", "backup", "owner", "deep.list[0]", "deep", "nope"},
}

func randomField(r *rapid.T, entity string, use func(pql.FieldInfo) bool) (pql.Field, pql.FieldInfo) {
	var fields []pql.FieldInfo
	for _, f := range pql.LookUp(entity).Fields {
		if (use(f) || f.Nested) && f.Name != "node_state" && f.Name != "resource" {
			fields = append(fields, f)
		}
	}
	info := rapid.SampledFrom(fields).Draw(r, "field")
	f := pql.Field{Name: info.Name}
	if info.Nested {
		q, err := pql.Parse("inventory[" + info.Name + "." + rapid.SampledFrom(randomPaths[info.Name]).Draw(r, "path") + "] {}")
		if err != nil {
			r.Fatal(err)
		}
		f.Path = q.Columns[0].Field.Path
	}
	return f, info
}

func randomExpr(r *rapid.T, entity string, depth int) pql.Expr {
	kinds := []string{"compare", "compare", "compare", "null"}
	if depth > 0 {
		kinds = append(kinds, "and", "or", "not", "related", "in")
	}
	testable := func(f pql.FieldInfo) bool { return f.Test }
	switch rapid.SampledFrom(kinds).Draw(r, "kind") {
	case "and":
		return pql.And{Terms: []pql.Expr{randomExpr(r, entity, depth-1), randomExpr(r, entity, depth-1)}}
	case "or":
		return pql.Or{Terms: []pql.Expr{randomExpr(r, entity, depth-1), randomExpr(r, entity, depth-1)}}
	case "not":
		return pql.Not{Term: randomExpr(r, entity, depth-1)}
	case "null":
		f, _ := randomField(r, entity, testable)
		return pql.Null{Field: f, Is: rapid.Bool().Draw(r, "is")}
	case "related":
		other := rapid.SampledFrom(randomEntities).Draw(r, "other")
		if here, _ := pql.Related(entity, other); here != nil {
			return pql.Subquery{Query: &pql.Query{Entity: other, Where: randomExpr(r, other, depth-1)}}
		}
	case "in":
		f, info := randomField(r, entity, testable)
		if info.Type == pql.PathType && info.Name == "path" || info.Type == pql.TextType {
			return pql.In{Fields: []pql.Field{f}, Values: []pql.Value{randomValue(r, info), randomValue(r, info)}}
		}
	}
	return randomCompare(r, entity, testable)
}

func randomCompare(r *rapid.T, entity string, testable func(pql.FieldInfo) bool) pql.Expr {
	f, info := randomField(r, entity, testable)
	ops := map[pql.Type][]string{
		pql.TextType: {"=", "~"}, pql.BoolType: {"="}, pql.NumberType: {"=", ">", "<", ">=", "<="}, pql.TimeType: {"=", ">", "<", ">=", "<="},
		pql.JSONType: {"=", ">", "<=", "~"}, pql.ListType: {"=", "~"}, pql.PathType: {"=", "~>"},
	}[info.Type]
	c := pql.Compare{Op: rapid.SampledFrom(ops).Draw(r, "op"), Field: f, Value: randomValue(r, info)}
	switch {
	case c.Op == "~":
		c.Value = pql.Text(rapid.SampledFrom([]string{"^w", "e", "[0-9]{2}", "(a|b)+", "^$", "(?i)DEBIAN", `\d\.`, "é|R", `\bweb\b`, "[^a-z]"}).Draw(r, "pattern"))
	case info.Type == pql.JSONType && c.Op != "=":
		c.Value = pql.Value{Kind: pql.Integer, Text: rapid.SampledFrom([]string{"0", "3", "10"}).Draw(r, "number")}
	}
	return c
}

func randomValue(r *rapid.T, info pql.FieldInfo) pql.Value {
	number := pql.Value{Kind: pql.Integer, Text: rapid.SampledFrom([]string{"0", "3", "7", "12"}).Draw(r, "number")}
	truth := pql.Value{Kind: pql.Boolean, Text: rapid.SampledFrom([]string{"true", "false"}).Draw(r, "truth")}
	text := pql.Text(rapid.SampledFrom([]string{
		"web-0.example.test", "db-1.example.test", "production", "failed", "success", "File", "Class", "Role::Web", "kernel", "os", "Linux", "Debian",
		"present", "role", "main", "web", "string", "", "'", "x\"y",
	}).Draw(r, "text"))
	switch info.Type {
	case pql.NumberType:
		return number
	case pql.BoolType:
		return truth
	case pql.TimeType:
		return pql.Text(rapid.SampledFrom([]string{"2026-03-01T10:05:00Z", "2026-03-02", "2026-03-01T15:00:00.123456Z"}).Draw(r, "time"))
	case pql.JSONType:
		return rapid.SampledFrom([]pql.Value{number, truth, text}).Draw(r, "value")
	case pql.PathType:
		steps := [][]pql.Value{
			{pql.Text("os"), pql.Text("family")}, {pql.Text("kernel")}, {pql.Text("processors"), pql.Text("models"), {Kind: pql.Integer, Text: "1"}},
		}
		return pql.Value{Kind: pql.List, List: rapid.SampledFrom(steps).Draw(r, "steps")}
	case pql.TextType, pql.ListType:
	}
	return text
}

func randomColumns(r *rapid.T, entity string) []pql.Column {
	shown := func(f pql.FieldInfo) bool { return f.Answer && f.Test }
	var columns []pql.Column
	for range rapid.IntRange(0, 3).Draw(r, "columns") {
		f, _ := randomField(r, entity, shown)
		if !slices.ContainsFunc(columns, func(c pql.Column) bool { return c.Field.String() == f.String() }) {
			columns = append(columns, pql.Column{Field: f})
		}
	}
	if rapid.Bool().Draw(r, "count") {
		columns = slices.Clip(columns)
		if len(columns) == 0 {
			return []pql.Column{{Function: "count"}}
		}
	}
	return columns
}
