package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
)

// What is slowed stands in its lanes, and in words with when it goes on and what ends it.
func TestSlowedEnvironmentsAreShown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := api.CompileSlowed{Environment: "bad", Version: "0123456789abcdef", Timeouts: 4, Since: now.Add(-time.Hour), RestsUntil: now.Add(time.Minute)}
	lanes := laneTable([]api.CompileSlowed{s}, now)
	for lane, want := range map[api.CompileLane]string{
		{Priority: "waited", Environment: "bad"}:     "4 took too long",
		{Priority: "previewing", Environment: "bad"}: "",
		{Priority: "waited", Environment: "good"}:    "",
	} {
		if row := lanes.row(lane); row[len(row)-1] != want || lanes.columns[len(row)-1] != "slowed" {
			t.Errorf("the lane %+v is shown as %q", lane, row)
		}
	}
	text := slowedText(s, now)
	for _, want := range []string{
		"Catalogs of bad are compiled one at a time and with pauses since 2026-03-01T11:00:00Z: 4 in a row of version 0123456789ab",
		"The next one may run at 2026-03-01T12:01:00Z.", "One that ends in time, or other code, ends this.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	s.Previews = true
	if text := slowedText(s, now.Add(time.Hour)); !strings.HasPrefix(text, "Previews of bad") || strings.Contains(text, "next one") {
		t.Errorf("previews that may run: %q", text)
	}
	var out bytes.Buffer
	a := &app{system: System{Out: &out, Err: &out}}
	err := a.printCodeStatus(api.CodeStatus{Environment: "bad", Slowed: &s})
	if err != nil || !strings.Contains(out.String(), "Previews of bad are compiled one at a time") {
		t.Errorf("code status: %v, %s", err, out.String())
	}
}

// The widest columns give way until a line fits; what is no terminal is left whole.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"web-1", strings.Repeat("long ", 20), strings.Repeat("ü", 60)}, {"web-2", "short", ""}}
	for width, want := range map[int]int{0: 5 + 2 + 100 + 2 + 60, 60: 60, 40: 40, 20: 5 + 2 + narrowest + 2 + narrowest} {
		var out bytes.Buffer
		a := &app{system: System{Out: &out, Width: width}}
		if err := a.printRows([]string{"node", "text", "more"}, rows); err != nil {
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
	a := &app{system: System{Out: &out, Width: 20}}
	if err := a.printRows(nil, [][]string{{"Rule", strings.Repeat("x", 100)}}); err != nil || strings.Contains(out.String(), "…") {
		t.Errorf("one thing is shown whole: %v\n%s", err, out.String())
	}
}

// A long list is printed while it comes, in the widths of its beginning.
func TestListsArePrintedWhileTheyCome(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{system: System{Out: &out, Err: &out, Width: 80}, output: "table"}
	l := newListing(a, table[string]{columns: []string{"name", "n"}, row: func(s string) []string { return []string{s, "1"} }})
	for i := range heldRows + 1 {
		if out.Len() > 0 && i < heldRows {
			t.Fatal("printed before the widths were known")
		}
		if err := l.add(fmt.Sprintf("node-%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasSuffix(out.String(), "node-1000  1\n") {
		t.Errorf("the last row is not there: %q", out.String()[out.Len()-40:])
	}
	if err := l.end(); err != nil || strings.Count(out.String(), "\n") != heldRows+2 {
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
			a := &app{system: System{Out: &out, Err: &out}, output: strings.Replace(output, "bare", "json", 1)}
			name := func(t thing) string { return t.Name }
			err := printList(a, []thing{{"a"}, {"b"}}[:n], table[thing]{
				columns: []string{"name"}, row: func(t thing) []string { return []string{name(t)} }, name: name, empty: "nothing here", bare: output == "bare",
			})
			if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
				t.Errorf("%s of %d: %v (-want +got):\n%s", output, n, err, diff)
			}
			if a.output == "json" && !json.Valid(out.Bytes()) {
				t.Errorf("no JSON: %s", out.String())
			}
		}
	}
}
