package query

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/tutti-project/tutti/internal/pql"
)

// Words is all that queries say differently to the two databases.
type Words struct{ Postgres bool }

// either picks the text for the database.
func (w Words) either(sqlite, postgres string) string {
	if w.Postgres {
		return postgres
	}
	return sqlite
}

// mark is the n-th placeholder. SQLite numbers $1 by where it stands, ?1 by its
// number.
func (w Words) mark(n int) string { return w.either("?", "$") + strconv.Itoa(n) }

// matches tests a text against a regular expression, whose argument comes from
// pattern.
func (w Words) matches(text, arg string) string {
	return w.either("regexp("+arg+", "+text+")", text+" ~ "+arg)
}

// pattern is a regular expression as the database reads it.
func (w Words) pattern(pattern string) (string, error) {
	if !w.Postgres {
		return pattern, nil
	}
	tree, err := pql.Syntax(pattern)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	writeARE(&b, tree)
	return b.String(), nil
}

// list gathers rows of expressions into one JSON array of arrays; order sorts it,
// unless it is empty.
func (w Words) list(exprs, order string) string {
	if order == "" {
		return w.either("json_group_array(json_array("+exprs+"))", "CAST(json_agg(json_build_array("+exprs+")) AS text)")
	}
	return w.either("json_group_array(json_array("+exprs+") ORDER BY "+order+")", "CAST(json_agg(json_build_array("+exprs+") ORDER BY "+order+") AS text)")
}

// single is such an array of one row.
func (w Words) single(exprs string) string {
	return w.either("json_array(json_array("+exprs+"))", "CAST(json_build_array(json_build_array("+exprs+")) AS text)")
}

// Elements is a table of a JSON array's strings: value, and at, the position.
func (w Words) Elements(array string) string {
	return w.either("(SELECT value, key AS at FROM json_each("+array+"))",
		"(SELECT value, at FROM jsonb_array_elements_text(CAST("+array+" AS jsonb)) WITH ORDINALITY AS l(value, at))")
}

// jsonType names the type of what a path leads to in a JSON text; NULL for nothing.
func (w Words) jsonType(doc, path string) string {
	return w.either(
		"CASE json_type("+doc+", "+path+") WHEN 'text' THEN 'string' WHEN 'integer' THEN 'number' WHEN 'real' THEN 'number'"+
			" WHEN 'true' THEN 'boolean' WHEN 'false' THEN 'boolean' ELSE json_type("+doc+", "+path+") END",
		"jsonb_typeof("+readable(doc)+" #> CAST("+path+" AS text[]))")
}

// jsonText is the string, or the number or word as text.
func (w Words) jsonText(doc, path string) string {
	return w.either("CASE json_type("+doc+", "+path+") WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST("+doc+" ->> "+path+" AS text) END",
		"("+readable(doc)+" #>> CAST("+path+" AS text[]))")
}

// jsonRaw is what a path leads to as JSON.
func (w Words) jsonRaw(doc, path string) string {
	return w.either("("+doc+" -> "+path+")", "CAST("+readable(doc)+" #> CAST("+path+" AS text[]) AS text)")
}

// sameJSON compares a JSON text with an argument.
func (w Words) sameJSON(raw, arg string) string {
	return w.either("json("+raw+") = json("+arg+")", "CAST("+raw+" AS jsonb) = CAST("+arg+" AS jsonb)")
}

// readable casts to jsonb, which has no room for the character zero.
func readable(doc string) string {
	return "CAST(CASE WHEN " + doc + ` LIKE '%\\u0000%' THEN NULL ELSE ` + doc + " END AS jsonb)"
}

// jsonPath is the argument that leads to a place in a JSON text.
func (w Words) jsonPath(steps []pql.Step) string {
	var b strings.Builder
	b.WriteString(w.either("$", "{"))
	for i, s := range steps {
		if w.Postgres {
			if i > 0 {
				b.WriteByte(',')
			}
			key := s.Text
			if s.Kind == pql.Index {
				key = strconv.FormatInt(s.Index, 10)
			}
			b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`)
			continue
		}
		if s.Kind == pql.Index {
			fmt.Fprintf(&b, "[%d]", s.Index)
		} else {
			b.WriteString(`."` + s.Text + `"`)
		}
	}
	b.WriteString(w.either("", "}"))
	return b.String()
}

// find is the position of a text in another, from 1.
func (w Words) find(in, what string) string {
	return w.either("instr("+in+", "+what+")", "strpos("+in+", "+what+")")
}

// hex is a row's number as forty digits.
func (w Words) hex(id string) string {
	return w.either("printf('%040x', "+id+")", "lpad(to_hex("+id+"), 40, '0')")
}

// date writes a time as a mask says.
func (w Words) date(us string, mask []pql.MaskPart) string {
	parts := make([]string, len(mask))
	for i, p := range mask {
		switch {
		case p.Word == "":
			parts[i] = "'" + strings.ReplaceAll(p.Text, "'", "''") + "'"
		case w.Postgres:
			parts[i] = "to_char(to_timestamp(0) AT TIME ZONE 'UTC' + " + us + " * interval '1 microsecond', '" + p.Word + "')"
		default:
			parts[i] = sqliteDate(us, p.Word)
		}
	}
	return "(" + strings.Join(parts, " || ") + ")"
}

// sqliteDate is one word of a mask.
func sqliteDate(us, word string) string {
	format := func(f string) string { return "strftime('" + f + "', " + us + " / 1000000, 'unixepoch')" }
	switch word {
	case "YYYY":
		return format("%Y")
	case "YY":
		return "substr(" + format("%Y") + ", 3)"
	case "MM":
		return format("%m")
	case "DD":
		return format("%d")
	case "DDD":
		return format("%j")
	case "D":
		return "(" + format("%w") + " + 1)"
	case "Q":
		return "((" + format("%m") + " + 2) / 3)"
	case "HH24":
		return format("%H")
	case "HH12", "HH":
		return format("%I")
	case "MI":
		return format("%M")
	case "SS":
		return format("%S")
	case "MS":
		return "printf('%03d', " + us + " / 1000 % 1000)"
	default: // US
		return "printf('%06d', " + us + " % 1000000)"
	}
}

// Patterns compiles regular expressions once for the function that SQLite calls.
type Patterns struct {
	mu    sync.Mutex
	known map[string]*regexp.Regexp
}

// maxPatterns is how many compiled expressions are kept.
const maxPatterns = 256

// Match says whether a text has a part that fits a pattern.
func (p *Patterns) Match(pattern, text string) (bool, error) {
	p.mu.Lock()
	re := p.known[pattern]
	p.mu.Unlock()
	if re == nil {
		var err error
		if re, err = pql.Regexp(pattern); err != nil {
			return false, err
		}
		p.mu.Lock()
		if p.known == nil || len(p.known) >= maxPatterns {
			p.known = map[string]*regexp.Regexp{}
		}
		p.known[pattern] = re
		p.mu.Unlock()
	}
	return re.MatchString(text), nil
}

// writeARE writes a regular expression in PostgreSQL's notation. Whether a
// repetition is greedy makes no difference to whether a text matches.
func writeARE(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpNoMatch:
		b.WriteString("(?!)")
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			writeRune(b, r, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		writeClass(b, re.Rune)
	case syntax.OpAnyCharNotNL:
		b.WriteString(`[^\n]`)
	case syntax.OpAnyChar:
		b.WriteByte('.')
	case syntax.OpBeginLine:
		b.WriteString(`(?:\A|(?<=\n))`)
	case syntax.OpEndLine:
		b.WriteString(`(?:\Z|(?=\n))`)
	case syntax.OpBeginText:
		b.WriteString(`\A`)
	case syntax.OpEndText:
		b.WriteString(`\Z`)
	case syntax.OpWordBoundary:
		b.WriteString(`\y`)
	case syntax.OpNoWordBoundary:
		b.WriteString(`\Y`)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		writeGroup(b, re.Sub[0])
		b.WriteByte(map[syntax.Op]byte{syntax.OpStar: '*', syntax.OpPlus: '+', syntax.OpQuest: '?'}[re.Op])
	case syntax.OpCapture:
		writeGroup(b, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if sub.Op == syntax.OpAlternate {
				writeGroup(b, sub)
				continue
			}
			writeARE(b, sub)
		}
	case syntax.OpAlternate:
		for i, sub := range re.Sub {
			if i > 0 {
				b.WriteByte('|')
			}
			writeGroup(b, sub)
		}
	case syntax.OpEmptyMatch, syntax.OpRepeat: // repetitions were simplified away
		b.WriteString("(?:)")
	}
}

func writeGroup(b *strings.Builder, re *syntax.Regexp) {
	b.WriteString("(?:")
	writeARE(b, re)
	b.WriteByte(')')
}

func writeRune(b *strings.Builder, r rune, fold bool) {
	if fold {
		folded := []rune{}
		for _, other := range regexpFolds(r) {
			folded = append(folded, other, other)
		}
		writeClass(b, folded)
		return
	}
	writePoint(b, r)
}

// writePoint writes one character so that it stands for itself everywhere.
func writePoint(b *strings.Builder, r rune) {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		b.WriteRune(r)
		return
	}
	fmt.Fprintf(b, `\U%08x`, r)
}

func writeClass(b *strings.Builder, ranges []rune) {
	b.WriteByte('[')
	for i := 0; i+1 < len(ranges); i += 2 {
		writePoint(b, max(ranges[i], 1)) // texts have no character zero
		if ranges[i+1] > ranges[i] {
			b.WriteByte('-')
			writePoint(b, ranges[i+1])
		}
	}
	b.WriteByte(']')
}

// regexpFolds lists a letter in every case.
func regexpFolds(r rune) []rune {
	folds := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		folds = append(folds, f)
	}
	return folds
}
