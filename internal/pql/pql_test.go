package pql_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

// example is one block of a *.pqltest file.
type example struct {
	file                   string
	line                   int
	ask, ast, write, wrong string
}

func examples(tb testing.TB) []example {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.pqltest")
	if err != nil || len(files) == 0 {
		tb.Fatal("no examples", err)
	}
	var out []example
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var e example
		for i, line := range strings.Split(string(text)+"\n\n", "\n") {
			word, rest, _ := strings.Cut(line, " ")
			rest = strings.TrimSpace(rest)
			switch word {
			case "ask":
				e.ask = rest
			case "ast":
				e.ast = rest
			case "write":
				e.write = rest
			case "wrong":
				e.wrong = rest
			case "":
				if e.ask+e.ast != "" {
					e.file, e.line = file, i
					out = append(out, e)
				}
				e = example{}
			}
		}
	}
	return out
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for _, e := range examples(t) {
		where := fmt.Sprintf("%s:%d", e.file, e.line)
		if e.wrong != "" {
			checkWrong(t, where, e)
			continue
		}
		q, err := pql.Parse(e.ask)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		if _, err := pql.Check(q); err != nil {
			t.Errorf("%s: check: %v", where, err)
		}
		if got, want := q.String(), first(e.write, e.ask); got != want {
			t.Errorf("%s: written\n %s, want\n %s", where, got, want)
		}
		if got := q.AST(); got != e.ast {
			t.Errorf("%s: AST\n %s, want\n %s", where, got, e.ast)
		}
		back, err := pql.ParseAST(e.ast, "")
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		if diff := cmp.Diff(q, back, shape...); diff != "" {
			t.Errorf("%s: the AST is another tree (-PQL +AST):\n%s", where, diff)
		}
	}
}

// shape leaves places and the way of quoting out of a comparison.
var shape = []cmp.Option{
	cmpopts.IgnoreTypes(pql.Pos{}), cmpopts.IgnoreFields(pql.Step{}, "Quoted"), cmpopts.EquateEmpty(),
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func checkWrong(t *testing.T, where string, e example) {
	t.Helper()
	q, err := pql.Parse(e.ask)
	if e.ast != "" {
		q, err = pql.ParseAST(e.ast, "")
	}
	if err == nil {
		_, err = pql.Check(q)
	}
	var found *pql.Error
	if !errors.As(err, &found) {
		t.Errorf("%s: not refused: %v", where, err)
		return
	}
	got := fmt.Sprintf("%d:%d %s", found.Pos.Line, found.Pos.Column, found.Detail)
	if len(found.Expected) > 0 {
		got += "; expected " + strings.Join(found.Expected, " or ")
	}
	if !strings.HasPrefix(got, e.wrong) {
		t.Errorf("%s:\n got %s\nwant %s", where, got, e.wrong)
	}
	if fault.Of(err) != fault.Invalid || fault.Detail(err) == "" {
		t.Errorf("%s: kind %v, detail %q", where, fault.Of(err), fault.Detail(err))
	}
}

func TestTheASTsOwnForms(t *testing.T) {
	t.Parallel()
	for ast, want := range map[string]string{
		`["=",["fact","kernel"],"Linux"]`:                                            `nodes { facts { name = "kernel" and value = "Linux" } }`,
		`["in","certname",["extract","certname",["select_facts",["=","name","a"]]]]`: `nodes { certname in facts[certname] { name = "a" } }`,
		`["extract","certname"]`:                                                     `nodes[certname] {}`,
		`["extract",["function","count"],["and",["=","certname","a"]]]`:              `nodes[count()] { certname = "a" }`,
		`["=","deactivated",null]`:                                                   `nodes { deactivated is null }`,
		``:                                                                           `nodes {}`,
	} {
		q, err := pql.ParseAST(ast, "nodes")
		if err != nil {
			t.Errorf("%s: %v", ast, err)
			continue
		}
		if got := q.String(); got != want {
			t.Errorf("%s: got %s, want %s", ast, got, want)
		}
	}
	q, err := pql.ParseAST(`["=",["parameter","ensure"],"running"]`, "resources")
	if err != nil || q.String() != `resources { parameters.ensure = "running" }` {
		t.Errorf("got %v, %v", q, err)
	}
}

func TestErrorsShowThePlace(t *testing.T) {
	t.Parallel()
	_, err := pql.Parse("nodes {\n  certname == \"a\"\n}")
	var e *pql.Error
	if !errors.As(err, &e) || e.Caret() != "  certname == \"a\"\n            ^" || !e.Syntax() {
		t.Errorf("got %v\n%s", err, e.Caret())
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	deep := "nodes{" + strings.Repeat("(", 100_000)
	if _, err := pql.Parse(deep); fault.Of(err) != fault.Invalid {
		t.Errorf("deep: %v", err)
	}
	if _, err := pql.Parse("nodes{" + strings.Repeat("!", 100_000)); fault.Of(err) != fault.Invalid {
		t.Errorf("deep: %v", err)
	}
	if _, err := pql.ParseAST(strings.Repeat("[", 100_000), "nodes"); fault.Of(err) != fault.Invalid {
		t.Errorf("deep: %v", err)
	}
	if _, err := pql.Parse(strings.Repeat(" ", pql.MaxBytes+1)); fault.Of(err) != fault.Invalid {
		t.Errorf("long: %v", err)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for before, want := range map[string][]string{
		"no":                           {"nodes"},
		"fact_":                        {"fact_contents", "fact_paths"},
		"nodes[cert":                   {"certname"},
		"nodes[co":                     {"count("},
		"nodes { certn":                {"certname"},
		"nodes { latest_report_n":      {"latest_report_noop", "latest_report_noop_pending"},
		"resources { ta":               {"tags", "tag"},
		`nodes { certname = "a" a`:     {"and"},
		`nodes { certname = "a" or`:    {"or", "order by"},
		"nodes { resources { exp":      {"exported"},
		"nodes { certname in facts[na": {"name"},
		"nodes { certname i":           {"in", "is"},
		"nodes } x":                    nil,
	} {
		var got []string
		for _, s := range pql.Complete(before) {
			got = append(got, s.Text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", before, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range examples(f) {
		f.Add(e.ask)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pql.Complete(text)
		q, err := pql.Parse(text)
		if err != nil {
			return
		}
		_, bad := pql.Check(q)
		written := q.String()
		back, err := pql.Parse(written)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, written, err)
		}
		if diff := cmp.Diff(q, back, shape...); diff != "" {
			t.Fatalf("%q was written as %q (-want +got):\n%s", text, written, diff)
		}
		if bad != nil {
			return
		}
		if back, err = pql.ParseAST(q.AST(), ""); err != nil {
			t.Fatalf("%q is %s: %v", text, q.AST(), err)
		}
		if diff := cmp.Diff(q, back, shape...); diff != "" {
			t.Fatalf("%q is %s (-want +got):\n%s", text, q.AST(), diff)
		}
	})
}

func FuzzParseAST(f *testing.F) {
	for _, e := range examples(f) {
		f.Add(e.ast)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := pql.ParseAST(text, "nodes")
		if err != nil {
			return
		}
		_, _ = pql.Check(q)
		back, err := pql.ParseAST(q.AST(), "")
		if err != nil {
			if strings.Contains(q.AST(), "null") || len(q.AST()) > len(text) {
				return
			}
			t.Fatalf("%q is %s: %v", text, q.AST(), err)
		}
		if diff := cmp.Diff(q.AST(), back.AST()); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text, diff)
		}
	})
}
