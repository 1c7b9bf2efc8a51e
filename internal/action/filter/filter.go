package filter

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a filter.
const (
	MaxBytes      = 4096 // of each text
	MaxConditions = 100  // texts, counting each word of a text of words
	MaxQueries    = 20   // questions to a node
)

// Filter is a condition as somebody gave it. Empty: every node.
type Filter struct {
	Facts   []string `json:"facts,omitempty"`   // NAME OP VALUE
	Classes []string `json:"classes,omitempty"` // name or /re/
	Modules []string `json:"modules,omitempty"` // name or /re/
	Names   []string `json:"names,omitempty"`   // name or /re/
	Words   []string `json:"words,omitempty"`   // facts and classes
	Select  string   `json:"select,omitempty"`  // an expression
}

// Condition is a filter that can be judged.
type Condition struct {
	parts []part
	needs Needs
}

// part is a piece of the filter, with what it means.
type part struct {
	flag, text string
	rule       rule
}

// Needs is what must be known of a node.
type Needs struct {
	Facts   []string // paths, sorted, each once; At finds them
	Classes bool
	Modules bool
	Data    []Query // what is asked of the node itself, sorted, each once
}

// Query is a question to a node: a source of Sources by its name, and the argument. It may be the key of a map.
type Query struct {
	Source string `json:"source"`
	Query  string `json:"query,omitempty"`
}

func (q Query) String() string {
	if q.Query == "" {
		return q.Source + "()"
	}
	return q.Source + "(" + quote(q.Query) + ")"
}

// Needs says what must be known of each node.
func (c *Condition) Needs() Needs { return c.needs }

// Parse reads a filter. Invalid.
func Parse(f Filter) (*Condition, error) {
	r := reader{facts: map[string]bool{}, data: map[Query]bool{}}
	for _, text := range f.Facts {
		r.one("facts", text, r.fact)
	}
	for _, text := range f.Classes {
		r.one("classes", text, r.class)
	}
	for _, text := range f.Modules {
		r.one("modules", text, r.module)
	}
	if len(f.Names) > 0 {
		r.names(f.Names)
	}
	for _, text := range f.Words {
		if strings.TrimSpace(text) == "" {
			r.one("words", text, r.word)
		}
		for word := range strings.FieldsSeq(text) {
			r.one("words", word, r.word)
		}
	}
	if f.Select != "" && r.may("select", f.Select) {
		r.expression(f.Select)
	}
	if r.err == nil && len(r.data) > MaxQueries {
		r.wrong("select", "", nil, "it asks nodes %d questions, and at most %d may be", len(r.data), MaxQueries)
	}
	if r.err != nil {
		return nil, r.err
	}
	r.needs.Facts = slices.Sorted(maps.Keys(r.facts))
	r.needs.Data = slices.SortedFunc(maps.Keys(r.data), compareQueries)
	return &Condition{parts: r.parts, needs: r.needs}, nil
}

func compareQueries(a, b Query) int {
	if c := strings.Compare(a.Source, b.Source); c != 0 {
		return c
	}
	return strings.Compare(a.Query, b.Query)
}

// reader reads a filter; the first error ends it.
type reader struct {
	parts []part
	needs Needs
	facts map[string]bool
	data  map[Query]bool
	count int
	err   error
}

// mistake is what is wrong with a text: at is the character, from 1, or 0.
type mistake struct {
	at     int
	detail string
	hint   string
}

// one reads a text that is a condition by itself.
func (r *reader) one(flag, text string, read func(string) (operand, *mistake)) {
	if !r.may(flag, text) {
		return
	}
	o, wrong := read(text)
	if wrong != nil {
		r.wrong(flag, text, wrong, "%s", wrong.detail)
		return
	}
	r.parts = append(r.parts, part{flag, text, &leaf{operands: []operand{o}}})
}

// names reads names, of which one must hold.
func (r *reader) names(texts []string) {
	patterns := make([]pattern, 0, len(texts))
	for _, text := range texts {
		if !r.may("names", text) {
			return
		}
		p, wrong := parseName(text)
		if wrong != nil {
			r.wrong("names", text, wrong, "%s", wrong.detail)
			return
		}
		patterns = append(patterns, p)
	}
	r.parts = append(r.parts, part{"names", strings.Join(texts, ", "), &leaf{operands: []operand{namedLike(patterns)}}})
}

// may says whether a text can be read at all.
func (r *reader) may(flag, text string) bool {
	if r.err != nil {
		return false
	}
	r.count++
	switch at := strings.IndexFunc(text, forbidden(flag)); {
	case r.count > MaxConditions:
		r.wrong(flag, text, nil, "the filter has more than %d conditions", MaxConditions)
	case len(text) > MaxBytes:
		r.wrong(flag, text, nil, "it has %d bytes, and at most %d may be", len(text), MaxBytes)
	case !utf8.ValidString(text):
		r.wrong(flag, "", nil, "it is not UTF-8")
	case at >= 0:
		r.wrong(flag, text, &mistake{at: characters(text[:at]) + 1}, "there is a control character")
	case strings.TrimSpace(text) == "":
		r.wrong(flag, "", &mistake{hint: examples[flag]}, "it is empty")
	}
	return r.err == nil
}

// forbidden are characters that no text may have; an expression may have several lines.
func forbidden(flag string) func(rune) bool {
	return func(c rune) bool {
		return unicode.IsControl(c) && (flag != "select" || !strings.ContainsRune("\n\r\t", c))
	}
}

// examples are what the fields are like.
var examples = map[string]string{
	"facts":   "a fact is like os.family=Debian or os.release.major>=11",
	"classes": "a class is like role::web or /^role::/",
	"modules": "a module is like service or /^pup/",
	"names":   "a name is like web1.example.com or /^web/",
	"words":   "a word is like role::web or os.family=Debian",
	"select":  `an expression is like fact("os.family") == "Debian" and class("role::web")`,
}

// wrong keeps the first mistake as the error.
func (r *reader) wrong(flag, text string, m *mistake, format string, args ...any) {
	if r.err != nil {
		return
	}
	if m == nil {
		m = &mistake{hint: examples[flag]}
	}
	r.err = invalid("field "+flag, text, m, format, args...)
}

func characters(text string) int { return utf8.RuneCountInString(text) }
