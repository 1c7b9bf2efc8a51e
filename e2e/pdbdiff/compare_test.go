package pdbdiff_test

import (
	"fmt"
	"mime"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// differences lists in what two answers to a question differ.
func differences(q question, theirs, ours *server, a, b answer) []string {
	if a.status != b.status {
		return []string{fmt.Sprintf("status: %s gives %d %.600s\n%s gives %d %.600s", theirs.name, a.status, a.body, ours.name, b.status, b.body)}
	}
	var found []string
	if x, y := mediaType(a.kind), mediaType(b.kind); x != y {
		found = append(found, fmt.Sprintf("content type: %q, %q", x, y))
	}
	if a.total != b.total {
		found = append(found, fmt.Sprintf("X-Records: %q, %q", a.total, b.total))
	}
	if a.status >= 400 && !strings.Contains(mediaType(a.kind), "json") {
		if diff := cmp.Diff(wording(a.body), wording(b.body)); diff != "" {
			found = append(found, "text (-theirs +ours):\n"+diff)
		}
		return found
	}
	if q.method == "HEAD" {
		return found
	}
	return append(found, rowDifferences(q, theirs, ours, a, b)...)
}

var (
	quotedWords = regexp.MustCompile(`'[^' ]+'(?:,? and |, )(?:'[^' ]+'(?:,? and |, )?)+`)
	quotedWord  = regexp.MustCompile(`'[^' ]+'`)
)

// wording is an error text as far as it must be the same: lists of words may be in
// any order, and each parser has its own words for what it expected.
func wording(body []byte) string {
	text, _, _ := strings.Cut(string(body), "\nExpected")
	return quotedWords.ReplaceAllStringFunc(text, func(list string) string {
		words := quotedWord.FindAllString(list, -1)
		slices.Sort(words)
		return strings.Join(words, ", ")
	})
}

func rowDifferences(q question, theirs, ours *server, a, b answer) []string {
	entity := q.entity()
	x, err := a.rows(theirs.loosener(entity))
	if err != nil {
		return []string{theirs.name + ": " + err.Error()}
	}
	y, err := b.rows(ours.loosener(entity))
	if err != nil {
		return []string{ours.name + ": " + err.Error()}
	}
	if !q.ordered {
		slices.Sort(x)
		slices.Sort(y)
	}
	if slices.Equal(x, y) {
		return nil
	}
	if len(x) != len(y) {
		onlyTheirs, onlyOurs := apart(x, y), apart(y, x)
		return []string{fmt.Sprintf("rows: %d, %d\nonly theirs: %s\nonly ours:   %s", len(x), len(y), short(onlyTheirs), short(onlyOurs))}
	}
	for i := range x {
		if x[i] != y[i] {
			at := max(0, common(x[i], y[i])-60)
			return []string{fmt.Sprintf("row %d of %d:\ntheirs: %.300s\nours:   %.300s\nwhole:  %.1000s", i, len(x), x[i][at:], y[i][at:], x[i])}
		}
	}
	return nil
}

// common is how many bytes two texts share at the beginning.
func common(x, y string) int {
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

func apart(x, y []string) (only []string) {
	count := map[string]int{}
	for _, row := range y {
		count[row]++
	}
	for _, row := range x {
		if count[row]--; count[row] < 0 {
			only = append(only, row)
		}
	}
	return only
}

func short(rows []string) string {
	more := ""
	if len(rows) > 3 {
		rows, more = rows[:3], fmt.Sprintf("\n  … and %d more", len(rows)-3)
	}
	return fmt.Sprintf("%.1500s%s", strings.Join(rows, "\n  "), more)
}

func mediaType(header string) string {
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return kind
}

// fits says in what an answer is not what the question says of it.
func (e expected) fits(s *server, q question, a answer) error {
	if fmt.Sprint(a.status) != e.status {
		return fmt.Errorf("%s gives %d, not %s: %.600s", s.name, a.status, e.status, a.body)
	}
	var count int
	switch {
	case e.text == "":
		return nil
	case strings.HasSuffix(e.text, " rows"):
		if _, err := fmt.Sscanf(e.text, "%d rows", &count); err != nil {
			return fmt.Errorf("%s: no number of rows in %q", q.place, e.text)
		}
		rows, err := a.rows(s.loosener(q.entity()))
		if err == nil && len(rows) != count {
			err = fmt.Errorf("%s gives %d rows, not %d", s.name, len(rows), count)
		}
		return err
	case a.status < 400:
		return e.holds(s, q, a)
	case !strings.Contains(string(a.body), e.text):
		return fmt.Errorf("%s says %q, which does not hold %q", s.name, a.body, e.text)
	}
	return nil
}

// holds says which of the expected rows an answer lacks.
func (e expected) holds(s *server, q question, a answer) error {
	have, err := a.rows(s.loosener(q.entity()))
	if err != nil {
		return err
	}
	want, err := answer{body: []byte(e.text)}.rows(s.loosener(q.entity()))
	if err != nil {
		return fmt.Errorf("%s: %w", q.place, err)
	}
	if lack := apart(want, have); len(lack) > 0 || len(want) == 0 && len(have) > 0 {
		return fmt.Errorf("%s lacks %s\nof %s", s.name, short(lack), short(have))
	}
	return nil
}

// documentedRows are the names of the rows of the page of differences: the first
// column of its tables.
func documentedRows(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/puppetdb-compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \|`).FindAllStringSubmatch(string(page), -1) {
		if rows[m[1]] {
			t.Errorf("the page has two rows %q", m[1])
		}
		rows[m[1]] = true
	}
	return rows
}
