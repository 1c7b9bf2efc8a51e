package pql

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// A narrowed query has no place from which rows of other nodes come: neither its own rows, nor those of queries inside.
func TestWithin(t *testing.T) {
	t.Parallel()
	nodes, err := NodeCondition(`certname = "a"`)
	if err != nil {
		t.Fatal(err)
	}
	const in = `certname in nodes[certname] { certname = "a" }`
	for text, want := range map[string]string{
		`nodes {}`:                 `nodes { certname = "a" }`,
		`nodes { certname ~ "x" }`: `nodes { certname = "a" and certname ~ "x" }`,
		`facts[value] { name = "x" or name = "y" }`:               `facts[value] { ` + in + ` and (name = "x" or name = "y") }`,
		`nodes { !facts { name = "x" } }`:                         `nodes { certname = "a" and !facts { ` + in + ` and name = "x" } }`,
		`facts[value] { name in facts[name] { certname = "b" } }`: `facts[value] { ` + in + ` and name in facts[name] { ` + in + ` and certname = "b" } }`,
		`reports[count()] {}`:                                     `reports[count()] { ` + in + ` }`,
	} {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		before := q.String()
		narrow, err := Within(q, nodes)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := narrow.String(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
		if _, err := Check(narrow); err != nil {
			t.Errorf("%s: %v", narrow, err)
		}
		if q.String() != before {
			t.Errorf("%s became %s itself", before, q)
		}
	}
	for _, text := range []string{
		`environments {}`, `packages {}`, `fact_paths {}`, `nodes { certname in nodes[certname] { facts { fact_paths { depth = 1 } } } }`,
	} {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Within(q, nodes); fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(fault.Detail(err), "may see only some") {
			t.Errorf("%s: got %v, want Invalid", text, err)
		}
	}
}

// Every entity but those that belong to no node can be narrowed.
func TestWithinEveryEntity(t *testing.T) {
	t.Parallel()
	nodes, err := NodeCondition(`environment = "web" and latest_report_status = "failed"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Entities() {
		if e.Counts {
			continue
		}
		narrow, err := Within(&Query{Entity: e.Name}, nodes)
		if (err == nil) != (e.Field("certname") != nil) {
			t.Errorf("%s: %v", e.Name, err)
		}
		if err == nil {
			if _, err = Check(narrow); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
}
