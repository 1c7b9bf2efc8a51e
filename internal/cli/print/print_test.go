package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// The widest columns give way until a line fits; what is no terminal is left whole.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"web-1", strings.Repeat("long ", 20), strings.Repeat("ü", 60)}, {"web-2", "short", ""}}
	for width, want := range map[int]int{0: 5 + 2 + 100 + 2 + 60, 60: 60, 40: 40, 20: 5 + 2 + narrowest + 2 + narrowest} {
		var out bytes.Buffer
		p := Printer{Out: &out, Width: width}
		if err := p.Rows([]string{"node", "text", "more"}, rows); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if got := utf8.RuneCountInString(lines[1]); got != want || len(lines) != 4 {
			t.Errorf("width %d: %d characters, want %d:\n%s", width, got, want, out.String())
		}
		if strings.Contains(lines[1], "…") != (width > 0) || !strings.HasSuffix(lines[2], "-") {
			t.Errorf("width %d:\n%s", width, out.String())
		}
	}
	var out bytes.Buffer
	p := Printer{Out: &out, Width: 20}
	if err := p.Rows(nil, [][]string{{"Rule", strings.Repeat("x", 100)}}); err != nil || strings.Contains(out.String(), "…") {
		t.Errorf("one thing is shown whole: %v\n%s", err, out.String())
	}
}

// A long list is printed while it comes, in the widths of its beginning.
func TestListsArePrintedWhileTheyCome(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := Printer{Out: &out, Width: 80, Format: "table"}
	l := NewListing(p, Table[string]{Columns: []string{"name", "n"}, Row: func(s string) []string { return []string{s, "1"} }})
	for i := range heldRows + 1 {
		if out.Len() > 0 && i < heldRows {
			t.Fatal("printed before the widths were known")
		}
		if err := l.Add(fmt.Sprintf("node-%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasSuffix(out.String(), "node-1000  1\n") {
		t.Errorf("the last row is not there: %q", out.String()[out.Len()-40:])
	}
	if err := l.End(); err != nil || strings.Count(out.String(), "\n") != heldRows+2 {
		t.Errorf("%v, %d lines", err, strings.Count(out.String(), "\n"))
	}
}

func TestListsInEveryFormat(t *testing.T) {
	t.Parallel()
	type thing struct {
		Name string `json:"name"`
	}
	for output, wants := range map[string][]string{ // of no things, one, and two
		"table": {"nothing here\n", "NAME\na\n", "NAME\na\nb\n"},
		"csv":   {"name\n", "name\na\n", "name\na\nb\n"},
		"jsonl": {"", "{\"name\":\"a\"}\n", "{\"name\":\"a\"}\n{\"name\":\"b\"}\n"},
		"name":  {"", "a\n", "a\nb\n"},
		"json": {
			"{\n  \"items\": []\n}\n", "{\n  \"items\": [\n    {\n      \"name\": \"a\"\n    }\n  ]\n}\n",
			"{\n  \"items\": [\n    {\n      \"name\": \"a\"\n    },\n    {\n      \"name\": \"b\"\n    }\n  ]\n}\n",
		},
		"bare": {"[]\n", "[\n  {\n    \"name\": \"a\"\n  }\n]\n", "[\n  {\n    \"name\": \"a\"\n  },\n  {\n    \"name\": \"b\"\n  }\n]\n"},
	} {
		for n, want := range wants {
			var out bytes.Buffer
			p := Printer{
				Out: &out, Format: strings.Replace(output, "bare", "json", 1),
				Hint: func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) },
			}
			name := func(t thing) string { return t.Name }
			err := List(p, []thing{{"a"}, {"b"}}[:n], Table[thing]{
				Columns: []string{"name"}, Row: func(t thing) []string { return []string{name(t)} }, Name: name, Empty: "nothing here", Bare: output == "bare",
			})
			if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
				t.Errorf("%s of %d: %v (-want +got):\n%s", output, n, err, diff)
			}
			if p.Format == "json" && !json.Valid(out.Bytes()) {
				t.Errorf("no JSON: %s", out.String())
			}
		}
	}
}

// One thing is JSON for programs, and for people what its text says.
func TestOneThing(t *testing.T) {
	t.Parallel()
	type thing struct {
		Name string `json:"name"`
	}
	name := func(t thing) string { return t.Name }
	for _, c := range []struct {
		text       func(Printer, thing) error
		table, err string
	}{
		{Rows(func(t thing) [][]string { return [][]string{{"Name", t.Name}, {"Next", ""}} }), "Name  a\nNext  -\n", ""},
		{Words(name), "a", ""},
		{Advice(name), "", "a\n"},
	} {
		for format, want := range map[string]string{"table": c.table, "name": c.table, "jsonl": "{\n  \"name\": \"a\"\n}\n"} {
			var out, advice bytes.Buffer
			p := Printer{Out: &out, Format: format, Hint: func(format string, args ...any) { fmt.Fprintf(&advice, format+"\n", args...) }}
			if err := One(p, thing{"a"}, c.text); err != nil || out.String() != want || !p.AsJSON() && advice.String() != c.err {
				t.Errorf("%s: %v, %q and %q, want %q and %q", format, err, out.String(), advice.String(), want, c.err)
			}
		}
	}
}
