package pql

import (
	"errors"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestNodeConditions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`latest_report_status = "failed"`:                       `latest_report_status = "failed"`,
		`facts.os.family = "Debian"`:                            `inventory { facts.os.family = "Debian" }`,
		` facts.a = 1 and facts.b = 2 `:                         `inventory { facts.a = 1 and facts.b = 2 }`,
		`facts.a = 1 and certname ~ "web" and trusted.x = "y"`:  `inventory { facts.a = 1 and trusted.x = "y" } and certname ~ "web"`,
		`facts.a = 1 or !(facts.b = 2 or certname = "a")`:       `inventory { facts.a = 1 } or !(inventory { facts.b = 2 } or certname = "a")`,
		`facts.a = 1 or facts.b != 2`:                           `inventory { facts.a = 1 } or !inventory { facts.b = 2 }`,
		`(facts.a = 1 or facts.b = 2) and environment = "test"`: `inventory { (facts.a = 1 or facts.b = 2) and environment = "test" }`,
		`facts.a is null and resources { type = "Class" }`:      `inventory { facts.a is null } and resources { type = "Class" }`,
		`environment in ["a", "b"]`:                             `inventory { environment in ["a", "b"] }`,
		`inventory { facts.a = 1 } and facts.b = 2`:             `inventory { facts.a = 1 } and inventory { facts.b = 2 }`,
	} {
		e, err := NodeCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := (&Query{Entity: "nodes", Where: e}).String()
		if got != "nodes { "+want+" }" {
			t.Errorf("%s:\n got %s\nwant nodes { %s }", text, got, want)
		}
		q, err := Parse(got)
		if err == nil {
			_, err = Check(q)
		}
		if err != nil {
			t.Errorf("%s: the query %s: %v", text, got, err)
		}
	}
}

func TestNodeConditionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                     `expected`,
		`certname = "a" x`:                     `(line 1, column 16)`,
		"certname = \"a\" and\n statu = \"b\"": `'statu' is not a queryable object for nodes`,
		`facts.a ~ "("`:                        `(line 1, column 11)`,
		`nodes { certname = "a"`:               `line 1`,
		"certname = \"\xff\"":                  `not valid UTF-8`,
	} {
		_, err := NodeCondition(text)
		if fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
		if e, ok := errors.AsType[*Error](err); ok && text != "" && e.Pos != (Pos{}) && e.Caret() == "" {
			t.Errorf("%s: no caret: %+v", text, e)
		}
	}
}

func TestConditionsAreCompleted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"latest_report_st": "latest_report_status", "fact": "facts", `certname = "a" a`: "and", "tru": "trusted"} {
		found := false
		for _, s := range CompleteCondition(text) {
			found = found || s.Text == want
		}
		if !found {
			t.Errorf("%s: %v has no %s", text, CompleteCondition(text), want)
		}
	}
}

func FuzzNodeCondition(f *testing.F) {
	for _, seed := range []string{
		`facts.a = 1 and !(certname ~ "b" or trusted.x[0] is null)`, `environment in ["a"] or facts."x y".z > 2 and resources{title = "x"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := NodeCondition(text)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		written := (&Query{Entity: "nodes", Where: e}).String()
		if _, err := Parse(written); err != nil {
			t.Fatalf("%q became %s: %v", text, written, err)
		}
	})
}
