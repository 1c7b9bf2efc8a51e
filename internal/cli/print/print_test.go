package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Every line fits: texts give way, then columns that can be spared, and the name at last. What is no terminal is left whole.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	type row struct{ name, text, more string }
	rows := []row{{"web-1.example.test", strings.Repeat("long ", 20), strings.Repeat("ü", 60)}, {"web-2.example.test", "short", ""}}
	table := Table[row]{
		Columns: []string{"node", "text", "more", "unseen"}, Spare: []string{"more"}, Wide: []string{"unseen"}, Empty: "none",
		Row: func(r row) []any { return []any{r.name, r.text, r.more, "x"} },
	}
	for width, want := range map[int]struct {
		first   string
		longest int
		hint    string
	}{
		0:  {"NODE                TEXT", 18 + 2 + 100 + 2 + 60, ""},
		80: {"NODE                TEXT", 80, ""},
		60: {"NODE                TEXT", 60, "Not shown for want of room: more"},
		40: {"NODE                TEXT", 40, "Not shown for want of room: more"},
		20: {"NODE       TEXT", 20, "Not shown for want of room: more"},
		5:  {"NODE", 5, "Not shown for want of room: more"},
	} {
		var out, hints bytes.Buffer
		p := Printer{Out: &out, Format: "table", Width: width, Hint: func(format string, args ...any) { fmt.Fprintf(&hints, format+"\n", args...) }}
		if err := List(p, rows, table); err != nil {
			t.Fatal(err)
		}
		longest := 0
		for line := range strings.Lines(out.String()) {
			longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		if longest > want.longest || width == 0 && longest < want.longest || !strings.HasPrefix(out.String(), want.first) {
			t.Errorf("width %d: the longest line has %d characters, want %d:\n%s", width, longest, want.longest, out.String())
		}
		if !strings.HasPrefix(hints.String(), want.hint) || want.hint == "" && hints.Len() > 0 {
			t.Errorf("width %d: said %q, want %q", width, hints.String(), want.hint)
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
	l, err := NewListing(p, Table[string]{Columns: []string{"name", "n"}, Row: func(s string) []any { return []any{s, 1} }})
	if err != nil {
		t.Fatal(err)
	}
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
		"yaml":  {"items: []\n", "items:\n- name: a\n", "items:\n- name: a\n- name: b\n"},
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
				Columns: []string{"name"}, Row: func(t thing) []any { return []any{name(t)} }, Name: name, Empty: "nothing here", Bare: output == "bare",
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
		{Rows(func(t thing) [][]string { return [][]string{{"Name", t.Name}, {"Next", ""}} }), "Name  a\n", ""},
		{Words(name), "a", ""},
		{Advice(name), "", "a\n"},
	} {
		for format, want := range map[string]string{"table": c.table, "json": "{\n  \"name\": \"a\"\n}\n", "jsonl": "{\"name\":\"a\"}\n", "yaml": "name: a\n"} {
			var out, advice bytes.Buffer
			p := Printer{Out: &out, Format: format, Hint: func(format string, args ...any) { fmt.Fprintf(&advice, format+"\n", args...) }}
			if err := One(p, thing{"a"}, c.text); err != nil || out.String() != want || !p.ForPrograms() && advice.String() != c.err {
				t.Errorf("%s: %v, %q and %q, want %q and %q", format, err, out.String(), advice.String(), want, c.err)
			}
		}
	}
}

// Programs get numbers, whole names and exact times; people what they can grasp.
func TestCells(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	then, three := now.Add(-9*time.Minute), 3
	for _, c := range []struct {
		cell                   any
		people, wide, programs string
	}{
		{then, "9m ago", "2026-03-01T11:51:00Z", "2026-03-01T11:51:00Z"},
		{&then, "9m ago", "2026-03-01T11:51:00Z", "2026-03-01T11:51:00Z"},
		{time.Time{}, "never", "never", ""},
		{(*time.Time)(nil), "never", "never", ""},
		{nil, "", "", ""},
		{Date(then), "2026-03-01", "2026-03-01T11:51:00Z", "2026-03-01T11:51:00Z"},
		{Size(1_234_567), "1.2 MB", "1.2 MB", "1234567"},
		{Growth(-2000), "-2.0 kB", "-2.0 kB", "-2000"},
		{Growth(2000), "+2.0 kB", "+2.0 kB", "2000"},
		{Took(1500 * time.Millisecond), "1.5s", "1.5s", "1.5"},
		{Took(0), "", "", ""},
		{ID("0123456789abcdef"), "0123456789ab", "0123456789abcdef", "0123456789abcdef"},
		{State("failed"), "failed", "failed", "failed"},
		{7, "7", "7", "7"},
		{&three, "3", "3", "3"},
		{(*int)(nil), "", "", ""},
		{true, "true", "true", "true"},
		{[]string{"a", "b"}, "a b", "a b", "a b"},
		{json.Number("1.50"), "1.50", "1.50", "1.50"},
	} {
		if got := [3]string{forPeople(c.cell, now, false), forPeople(c.cell, now, true), forPrograms(c.cell)}; got != [3]string{c.people, c.wide, c.programs} {
			t.Errorf("%#v: got %q, want %q, %q, %q", c.cell, got, c.people, c.wide, c.programs)
		}
	}
}

// A list is sorted by what its cells are, not by how they look, in every format.
func TestSortedLists(t *testing.T) {
	t.Parallel()
	type thing struct {
		Name string     `json:"name"`
		N    int        `json:"n"`
		At   *time.Time `json:"-"`
	}
	early, late := time.Unix(0, 0), time.Unix(1000, 0)
	things := []thing{{"b", 10, &late}, {"a", 9, nil}, {"c", 100, &early}}
	table := Table[thing]{
		Columns: []string{"name", "how many", "at"}, Row: func(t thing) []any { return []any{t.Name, t.N, t.At} },
		Name: func(t thing) string { return t.Name },
	}
	for sort, want := range map[string]string{"name": "abc", "-name": "cba", "how_many": "abc", "-how many": "cba", "HOW-MANY": "abc", "at": "acb", "": "bac"} {
		for _, format := range []string{"name", "jsonl", "csv"} {
			var out bytes.Buffer
			if err := List(Printer{Out: &out, Format: format, Sort: sort}, things, table); err != nil {
				t.Fatal(err)
			}
			got := ""
			for line := range strings.Lines(strings.TrimPrefix(out.String(), "name,how_many,at\n")) {
				got += strings.Trim(strings.TrimPrefix(line, `{"name":"`), "\n")[:1]
			}
			if got != want {
				t.Errorf("sorted by %q as %s: %s, want %s", sort, format, got, want)
			}
		}
	}
	var out bytes.Buffer
	if err := List(Printer{Out: &out, Format: "csv", Columns: []string{"at", "Name"}}, things[:1], table); err != nil ||
		out.String() != "at,name\n1970-01-01T00:16:40Z,b\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	for _, p := range []Printer{{Columns: []string{"nme"}}, {Sort: "-nme"}} {
		if _, err := NewListing(p, table); err == nil || !strings.Contains(err.Error(), "did you mean name?") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// States have colours where there are some, and the columns stay aligned.
func TestColours(t *testing.T) {
	t.Parallel()
	table := Table[string]{Columns: []string{"state", "x"}, Row: func(s string) []any { return []any{State(s), "y"} }}
	var out bytes.Buffer
	if err := List(Printer{Out: &out, Format: "table", Colours: true}, []string{"failed", "unchanged, 3 would change", "odd"}, table); err != nil {
		t.Fatal(err)
	}
	want := "STATE                      X\n\x1b[31mfailed\x1b[0m                     y\n\x1b[2munchanged, 3 would change\x1b[0m  y\nodd                        y\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrapped(t *testing.T) {
	t.Parallel()
	// A command that is cut into lines is several commands for the shell that it is pasted into.
	text := "One two three four\nfive six.\n\nSee:\n\n  tutti node list --where 'a = 1'   # all\n\n- a point that is long\nEnd.\n"
	for width, want := range map[int]string{
		0:  text,
		14: "One two three\nfour five six.\n\nSee:\n\n  tutti node list --where 'a = 1'   # all\n\n- a point that\n    is long\nEnd.\n",
		80: "One two three four five six.\n\nSee:\n\n  tutti node list --where 'a = 1'   # all\n\n- a point that is long\nEnd.\n",
	} {
		if diff := cmp.Diff(want, Wrapped(text, width)); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}
