package filter

import (
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// FromMCollective translates the language of `mco -S` into an expression:
//
//	os.family=Debian and role::web and not /^db/ and fstat('/etc/hosts').md5=/^9f/
//
// Facts become with("…"), so that they are compared as before; a data field that is not there holds under no operator, as before.
// Operators and precedence are those of MCollective: not before and before or. What comes out can be parsed. Invalid, with the place.
func FromMCollective(text string) (string, error) {
	r := reader{facts: map[string]bool{}, data: map[Query]bool{}}
	if !r.may("select", text) {
		return "", r.err
	}
	t := translation{reader: &r, text: []rune(text)}
	if wrong := t.whole(); wrong != nil {
		return "", invalid("the expression", text, wrong, "%s", wrong.detail)
	}
	out := t.out.String()
	if _, err := Parse(Filter{Select: out}); err != nil {
		return "", &fault.Error{Kind: fault.Invalid, Detail: "the expression, translated: " + fault.Detail(err), Hint: fault.Hint(err)}
	}
	return out, nil
}

// translation is a text while it is translated.
type translation struct {
	*reader
	text []rune
	at   int
	out  strings.Builder
}

// whole reads statements with and, or and not between them.
func (t *translation) whole() *mistake {
	var open []int // where parentheses were opened
	for {
		t.spaces()
		switch {
		case t.take("("):
			open = append(open, t.at)
			t.out.WriteString("(")
			continue
		case t.word("not"), t.take("!"):
			t.out.WriteString("not ")
			continue
		}
		if wrong := t.statement(); wrong != nil {
			return wrong
		}
		for t.spaces(); len(open) > 0 && t.take(")"); t.spaces() {
			open = open[:len(open)-1]
			t.out.WriteString(")")
		}
		switch {
		case t.word("and"):
			t.out.WriteString(" and ")
		case t.word("or"):
			t.out.WriteString(" or ")
		case t.next() == ')':
			return t.wrong("the parenthesis was not opened")
		case t.at < len(t.text):
			return t.wrong("and, or, or the end is expected")
		case len(open) > 0:
			return &mistake{at: open[len(open)-1], detail: "the parenthesis is not closed"}
		default:
			return nil
		}
	}
}

// wrong is a mistake at what comes next.
func (t *translation) wrong(format string, args ...any) *mistake {
	return &mistake{
		at: t.at + 1, detail: fmt.Sprintf(format, args...),
		hint: "a statement is like os.family=Debian, role::web, /^db/ or fstat('/etc/hosts').md5=/^9f/",
	}
}

func (t *translation) spaces() {
	for t.at < len(t.text) && isSpace(t.text[t.at]) {
		t.at++
	}
}

func isSpace(c rune) bool { return strings.ContainsRune(" \t\r\n", c) }

// next is the character that comes next; 0: the end.
func (t *translation) next() rune {
	if t.at < len(t.text) {
		return t.text[t.at]
	}
	return 0
}

// take takes what is written next, if it is this.
func (t *translation) take(word string) bool {
	end := t.at + len(word)
	if end > len(t.text) || string(t.text[t.at:end]) != word {
		return false
	}
	t.at = end
	return true
}

// word takes a word with a space, a parenthesis or nothing behind it.
func (t *translation) word(word string) bool {
	before := t.at
	if t.take(word) && (t.at == len(t.text) || isSpace(t.next()) || t.next() == '(') {
		return true
	}
	t.at = before
	return false
}

// until takes characters up to one of these.
func (t *translation) until(stop string) string {
	from := t.at
	for t.at < len(t.text) && !strings.ContainsRune(stop, t.text[t.at]) {
		t.at++
	}
	return string(t.text[from:t.at])
}

// statement is a class, a fact or a question.
func (t *translation) statement() *mistake {
	from := t.at
	if t.next() == '/' {
		text, wrong := t.slashed()
		if wrong != nil {
			return wrong
		}
		return t.class(from, text)
	}
	name := t.until("()=<>!~ \t\r\n/'\"")
	switch {
	case name == "" && t.at == len(t.text):
		return t.wrong("a statement is expected, and there is the end")
	case name == "":
		return t.wrong("a statement is expected")
	case t.next() == '(':
		return t.question(from, name)
	}
	operator, literal, value, wrong := t.comparison()
	switch {
	case wrong != nil:
		return wrong
	case operator == "":
		return t.class(from, name)
	}
	return t.fact(from, name, operator, literal, value)
}

func (t *translation) class(at int, text string) *mistake {
	o, wrong := t.reader.class(text)
	if wrong != nil {
		wrong.at += at
		return wrong
	}
	t.out.WriteString(o.slot)
	return nil
}

func (t *translation) fact(at int, name, operator string, literal bool, value string) *mistake {
	if literal && operator == "=" {
		operator = "==" // which reads no regular expression
	}
	o, wrong := t.reader.fact(name + operator + value)
	if wrong != nil {
		wrong.at += at
		return wrong
	}
	t.out.WriteString(o.slot)
	return nil
}

// comparison reads an operator and its value; no operator: there is none. A literal value was in quotes.
func (t *translation) comparison() (operator string, literal bool, value string, wrong *mistake) {
	before := t.at
	t.spaces()
	for _, n := range notations {
		if t.take(n.written) {
			operator = n.operator
			break
		}
	}
	if operator == "" {
		t.at = before
		return "", false, "", nil
	}
	t.spaces()
	switch quote := t.next(); quote {
	case '/':
		value, wrong = t.slashed()
	case '\'', '"':
		t.at++
		value, literal = t.until(string(quote)), true
		if !t.take(string(quote)) {
			wrong = t.wrong("the value ends with %c", quote)
		}
	default:
		value = t.until(" \t\r\n()")
	}
	if wrong == nil && value == "" {
		wrong = t.wrong("a value is expected behind %s", operator)
	}
	return operator, literal, value, wrong
}

// slashed reads a regular expression between slashes; \/ is a slash in it.
func (t *translation) slashed() (string, *mistake) {
	from := t.at
	var b strings.Builder
	b.WriteRune('/')
	for t.at++; t.at < len(t.text); t.at++ {
		c := t.text[t.at]
		switch {
		case c == '/':
			t.at++
			b.WriteRune('/')
			return b.String(), nil
		case c == '\\' && t.at+1 < len(t.text):
			t.at++
			if t.text[t.at] != '/' {
				b.WriteRune('\\')
			}
			b.WriteRune(t.text[t.at])
		default:
			b.WriteRune(c)
		}
	}
	t.at = from
	return "", t.wrong("the regular expression does not end with /")
}

// question reads name('argument').field OP value.
func (t *translation) question(from int, name string) *mistake {
	argument, given, wrong := t.argument()
	if wrong != nil {
		return wrong
	}
	if !t.take(".") {
		return t.wrong("a dot and the name of a field are expected")
	}
	fieldAt := t.at
	field := t.until("()=<>!~ \t\r\n/'\".")
	operator, literal, value, wrong := t.comparison()
	if wrong != nil {
		return wrong
	}
	if name == "fact" {
		return t.factQuestion(from, argument, field, operator, literal, value)
	}
	s := sourceOf(name)
	if s == nil {
		return t.noSource(from, name)
	}
	if was, ok := renamed[field]; ok && s.Name == "file" {
		field = was
	}
	f, wrong := s.field(field)
	if wrong != nil {
		wrong.at = fieldAt + 1
		return wrong
	}
	q, wrong := s.query(argument, given)
	if wrong != nil {
		wrong.at = from + 1
		return wrong
	}
	text, wrong := compared(q.String()+"."+f.Name, f, operator, value)
	if wrong != nil {
		wrong.at = fieldAt + 1
		return wrong
	}
	t.out.WriteString(text)
	return nil
}

// renamed are fields of fstat that are called something else here.
var renamed = map[string]string{"mtime_seconds": "mtime", "mtime_age": "age"}

// argument reads ('text') or ().
func (t *translation) argument() (text string, given bool, wrong *mistake) {
	t.take("(")
	t.spaces()
	if quote := t.next(); quote == '\'' || quote == '"' {
		t.at++
		text, given = t.until(string(quote)), true
		if !t.take(string(quote)) {
			return "", false, t.wrong("the argument ends with %c", quote)
		}
		t.spaces()
	}
	if !t.take(")") {
		return "", false, t.wrong("one text in quotes, or ) is expected")
	}
	return text, given, nil
}

func (t *translation) noSource(from int, name string) *mistake {
	all := make([]string, 0, len(sources)+1)
	for _, s := range sources {
		all = append(all, s.Name)
	}
	m := &mistake{at: from + 1, detail: "there is no data " + shorten(name) + "; there are fact, " + strings.Join(all, ", ")}
	m.hint = fault.DidYouMean(name, append(all, "fact", "fstat"))
	if name == "agent" {
		m.hint = `in an expression of Tutti, write module("name")`
	}
	return m
}

// factQuestion is fact('a.b').value=1 or fact('a.b').exists.
func (t *translation) factQuestion(from int, path, field, operator string, literal bool, value string) *mistake {
	switch {
	case field == "value" && operator != "":
		return t.fact(from, path, operator, literal, value)
	case field == "value":
		return &mistake{at: t.at + 1, detail: "an operator and a value are expected behind value"}
	case field != "exists":
		return &mistake{at: from + 1, detail: "fact has no field " + shorten(field) + "; there are value, exists"}
	}
	canonical, wrong := parsePath(path)
	if wrong != nil {
		wrong.at = from + 1
		return wrong
	}
	is := "!="
	switch {
	case operator == "", (operator == "=" || operator == "==") && value == "true", operator == "!=" && value == "false":
	case (operator == "=" || operator == "==") && value == "false", operator == "!=" && value == "true":
		is = "=="
	default:
		return &mistake{at: t.at, detail: "exists is true or false"}
	}
	t.out.WriteString("(fact(" + quote(canonical) + ") " + is + " nil)")
	return nil
}

// compared is the comparison of a field with a text. Only == and matches are false by themselves if the field is not there.
func compared(slot string, f *Field, operator, value string) (string, *mistake) {
	if operator == "" {
		if f.Type != Boolean {
			return "", &mistake{detail: f.Name + " is compared with something", hint: "write an operator and a value behind it"}
		}
		return "(" + slot + " == true)", nil
	}
	test, wrong := newFactTest(f.Name, operator, value, 1)
	if wrong != nil {
		return "", wrong
	}
	there := slot + " != nil and "
	switch {
	case test.re != nil && f.Type == Text:
		inner := quote(test.value[1 : len(test.value)-1])
		if test.operator == "!~" {
			return "(" + there + "not (" + slot + " matches " + inner + "))", nil
		}
		return "(" + slot + " matches " + inner + ")", nil
	case test.re != nil:
		return "", &mistake{detail: fmt.Sprintf("%s is a %s, and only text is matched", f.Name, f.Type)}
	case f.Type != Number && test.operator != "==" && test.operator != "!=":
		return "", &mistake{detail: fmt.Sprintf("%s is a %s, and only numbers are greater or less", f.Name, f.Type)}
	case f.Type == Number && !number.MatchString(value):
		return "", &mistake{detail: fmt.Sprintf("%s is a number, and %s is none", f.Name, shorten(value))}
	case f.Type == Boolean && value != "true" && value != "false":
		return "", &mistake{detail: f.Name + " is true or false"}
	}
	written := strings.TrimPrefix(value, "+")
	if f.Type == Text {
		written = quote(value)
	}
	if test.operator == "==" {
		there = ""
	}
	return "(" + there + slot + " " + test.operator + " " + written + ")", nil
}
