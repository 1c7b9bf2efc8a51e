package pdbdiff_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// question is one of testdata/*.pqltest: paragraphs like
//
//	= nodes whose name begins with web
//	GET /nodes
//	query ["~","certname","^web"]
//	same
//
// First its name. Then method and path below /pdb/query/v4, and a parameter on each
// line; `body` is what a POST sends. `PQL text` stands for GET with the parameter
// query at the root. In paths, ${report N K} is the hash of the K-th report of the
// N-th node, as the asked server calls it.
//
// The last line is what is expected:
//
//	same              the same rows, in any order
//	same order        the same rows in the same order
//	same status       refused by both, each in its own words
//	differs ROW | A | B
//
// (`differs in order: ROW` where the order of rows counts, `differs before 8: ROW` where newer
// PuppetDBs answer as Tutti). ROW names a row of docs/puppetdb-compatibility.md, A is what PuppetDB
// answers and B what Tutti does: a status, and behind it, if wanted, a part of the
// text, or JSON that holds the rows, or `N rows`.
type question struct {
	place        string // file and line
	name         string
	method, path string
	params       url.Values
	body         string
	verdict      string // same, same order, same status, differs
	ordered      bool   // rows are compared in their order
	row          string
	before       int // the PuppetDB that answers as Tutti does; 0: none does
	theirs, ours expected
}

// expected is what one server answers where they differ.
type expected struct {
	status string
	text   string
}

var verdictForm = regexp.MustCompile(`^differs (in order: )?(?:before (\d+): )?(.+?) \| (\d{3})(?: (.*?))? \| (\d{3})(?: (.*))?$`)

// readQuestions reads every file of testdata.
func readQuestions(t *testing.T) []question {
	t.Helper()
	files, err := filepath.Glob("testdata/*.pqltest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no questions: %v", err)
	}
	var all []question
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		questions, err := parseQuestions(filepath.Base(file), string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, questions...)
	}
	return all
}

func parseQuestions(file, text string) ([]question, error) {
	var list []question
	var lines []string
	for i, line := range append(strings.Split(text, "\n"), "") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) != "":
			lines = append(lines, line)
		case len(lines) > 0:
			q, err := parseQuestion(lines)
			q.place = fmt.Sprintf("%s:%d", file, i-len(lines)+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", q.place, err)
			}
			list, lines = append(list, q), nil
		}
	}
	return list, nil
}

func parseQuestion(lines []string) (question, error) {
	q := question{params: url.Values{}}
	name, ok := strings.CutPrefix(lines[0], "= ")
	if !ok || len(lines) < 3 {
		return q, fmt.Errorf("a question is a name (= ...), a request and a verdict, not %q", lines)
	}
	q.name = name
	var rest string
	q.method, rest, _ = strings.Cut(lines[1], " ")
	if q.method == "PQL" {
		q.method, rest = http.MethodGet, "/"
		q.params.Set("query", strings.TrimPrefix(lines[1], "PQL "))
	}
	if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodPut}, q.method) {
		return q, fmt.Errorf("unknown method %q", q.method)
	}
	q.path = strings.TrimSuffix(rest, "/")
	for _, line := range lines[2 : len(lines)-1] {
		key, value, _ := strings.Cut(line, " ")
		if key == "body" {
			q.body = value
			continue
		}
		q.params.Add(key, value)
	}
	return q, q.setVerdict(lines[len(lines)-1])
}

func (q *question) setVerdict(line string) error {
	switch line {
	case "same", "same order", "same status":
		q.verdict, q.ordered = line, line == "same order"
		return nil
	}
	m := verdictForm.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("unknown verdict %q", line)
	}
	q.verdict, q.ordered = "differs", m[1] != ""
	q.before, _ = strconv.Atoi(m[2]) // digits, or nothing
	q.row, q.theirs, q.ours = m[3], expected{m[4], m[5]}, expected{m[6], m[7]}
	return nil
}

// wrong says whether both servers are meant to refuse it.
func (q question) wrong() bool {
	refused := func(e expected) bool { return e.status >= "400" }
	return q.verdict == "same status" || q.verdict == "differs" && (refused(q.theirs) || refused(q.ours)) || strings.HasPrefix(q.name, "wrong: ")
}

func TestReadQuestions(t *testing.T) {
	t.Parallel()
	const text = "# comment\n= one\nPQL nodes{}\nsame\n\n= two\nPOST /nodes\nlimit 3\nbody {}\ndiffers a row | 500 | 400 no\n\n= three\nPQL y\ndiffers before 8: b row | 200 3 rows | 200\n"
	list, err := parseQuestions("x", text)
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if q := list[0]; q.place != "x:2" || q.method != "GET" || q.path != "" || q.params.Get("query") != "nodes{}" || q.verdict != "same" {
		t.Errorf("first: %+v", q)
	}
	if q := list[1]; q.path != "/nodes" || q.params.Get("limit") != "3" || q.body != "{}" || q.row != "a row" || q.theirs != (expected{"500", ""}) ||
		q.ours != (expected{"400", "no"}) {
		t.Errorf("second: %+v", q)
	}
	if q := list[2]; q.verdict != "differs" || q.before != 8 || q.row != "b row" || q.theirs != (expected{"200", "3 rows"}) {
		t.Errorf("third: %+v", q)
	}
	for _, bad := range []string{"one\nPQL x\nsame", "= one\nsame", "= one\nDELETE /nodes\nsame", "= one\nPQL x\nperhaps"} {
		if _, err := parseQuestions("x", bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
