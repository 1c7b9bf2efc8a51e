package ddl

import (
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ruby reads a DDL of MCollective as the description of the module of a name. Nothing of it is executed.
func Ruby(name string, ddl []byte) (Translated, error) {
	if err := bounded(ddl); err != nil {
		return Translated{}, err
	}
	tokens, err := scan(string(ddl))
	if err != nil {
		return Translated{}, err
	}
	p := parser{tokens: tokens, plugin: &plugin{line: 1}}
	if err := p.statements("", p.top); err != nil {
		return Translated{}, err
	}
	return p.plugin.translate(name)
}

// parser reads statements.
type parser struct {
	tokens    []token
	next      int
	plugin    *plugin
	act       *act              // the action whose block is read
	variables map[string]string // of the loops around
	count     int               // statements that were read
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

func (t token) is(mark string) bool    { return t.kind == tokenMark && t.text == mark }
func (t token) named(name string) bool { return t.kind == tokenName && t.text == name }

// String is a token in an error.
func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the file"
	case tokenNewline:
		return "the end of the line"
	case tokenName, tokenLabel, tokenMark, tokenNumber, tokenSymbol:
		return "`" + t.text + "`"
	case tokenText, tokenRegex, tokenWords:
	}
	return "a literal"
}

func (p *parser) newlines() {
	for p.peek().kind == tokenNewline {
		p.take()
	}
}

func (p *parser) want(mark string) error {
	if t := p.take(); !t.is(mark) {
		return at(t.line, "%s is expected here, not %s", mark, t)
	}
	return nil
}

// statements reads statements up to the end of their block, or of the file.
func (p *parser) statements(block string, each func(name token) error) error {
	for {
		p.newlines()
		t := p.peek()
		switch {
		case t.kind == tokenEnd && block == "":
			return nil
		case t.kind == tokenEnd:
			return at(t.line, "the block of %s does not end", block)
		case t.named("end") && block != "":
			p.take()
			return nil
		}
		if p.count++; p.count > maxStatements {
			return at(t.line, "the DDL has more than %d statements", maxStatements)
		}
		if err := p.statement(each); err != nil {
			return err
		}
		if t := p.peek(); t.kind != tokenNewline && t.kind != tokenEnd && !t.named("end") {
			return at(t.line, "a statement ends here, and %s follows", t)
		}
	}
}

func (p *parser) statement(each func(token) error) error {
	t := p.peek()
	if t.is("[") || t.kind == tokenWords {
		return p.loop(each)
	}
	if p.take(); t.kind != tokenName {
		return at(t.line, "a statement begins with a name, not with %s", t)
	}
	return each(t)
}

// top reads a statement outside of all blocks.
func (p *parser) top(t token) error {
	switch t.text {
	case "metadata":
		args, err := p.arguments()
		if err != nil {
			return err
		}
		if len(args) != 1 {
			return at(t.line, "metadata takes keys and values")
		}
		p.plugin.line = t.line
		return p.plugin.describe(args[0])
	case "action":
		return p.action(t)
	case "requires":
		p.plugin.warn(t.line, "requires has no equivalent; it is left out")
		_, err := p.arguments()
		return err
	case "usage":
		p.plugin.warn(t.line, "usage has no equivalent; the text is left out")
		_, err := p.arguments()
		return err
	case "dataquery":
		return at(t.line, "this is the DDL of a data plugin (dataquery), not of an agent: write an action that gives the same, for conditions on nodes")
	case "discovery":
		return at(t.line, "this is the DDL of a discovery plugin, not of an agent")
	}
	return at(t.line, "`%.80s` is no statement of a DDL; Ruby is not executed here", t.text)
}

func (p *parser) action(t token) error {
	args, err := p.arguments()
	if err != nil {
		return err
	}
	if len(args) == 0 || args[0].kind != text && args[0].kind != symbol {
		return at(t.line, "action needs a name")
	}
	a := &act{line: t.line, name: args[0].text}
	for _, other := range p.plugin.actions {
		if other.name == a.name {
			return at(t.line, "the action %.80s is described twice", a.name)
		}
	}
	if len(args) > 1 {
		if a.description, err = args[1].words("description"); err != nil {
			return err
		}
	}
	p.plugin.actions = append(p.plugin.actions, a)
	if !p.peek().named("do") {
		return nil
	}
	p.take()
	p.act = a
	return p.statements("the action "+a.name, p.inAction)
}

// inAction reads a statement of an action.
func (p *parser) inAction(t token) error {
	if t.text == "summarize" {
		if do := p.take(); !do.named("do") {
			return at(do.line, "do is expected behind summarize, not %s", do)
		}
		return p.statements("summarize", p.inSummary)
	}
	args, err := p.arguments()
	if err != nil {
		return err
	}
	switch t.text {
	case "display":
		if len(args) != 1 || args[0].kind != symbol && args[0].kind != text {
			return at(t.line, "display takes :ok, :failed or :always")
		}
		p.act.display = args[0].text
		p.plugin.display(p.act, t.line)
		return nil
	case "input", "output":
		if len(args) == 0 || args[0].kind != text && args[0].kind != symbol {
			return at(t.line, "%s needs a name", t.text)
		}
		of := value{line: t.line, kind: table}
		if len(args) > 1 {
			of = args[1]
		}
		return p.plugin.field(p.act, t.text, t.line, args[0].text, of)
	}
	return at(t.line, "`%.80s` is no statement of an action; Ruby is not executed here", t.text)
}

// inSummary reads a statement of summarize: aggregate FUNCTION(FIELD, OPTIONS), OPTIONS.
func (p *parser) inSummary(t token) error {
	if t.text != "aggregate" {
		return at(t.line, "`%.80s` is no statement of summarize, only aggregate is", t.text)
	}
	wrapped := p.peek().is("(")
	if wrapped {
		p.take()
	}
	function := p.take()
	if function.kind != tokenName {
		return at(function.line, "aggregate takes a function such as summary(:status), not %s", function)
	}
	args, err := p.arguments()
	if err != nil {
		return err
	}
	if p.peek().is(",") {
		p.take()
		options, err := p.list(map[bool]string{true: ")"}[wrapped])
		if err != nil {
			return err
		}
		args = append(args, options...)
	}
	if wrapped {
		if err := p.want(")"); err != nil {
			return err
		}
	}
	return p.plugin.aggregate(p.act, t.line, function.text, args)
}

// ends says whether arguments without parentheses end before a token.
func (p *parser) ends(t token) bool {
	return t.kind == tokenNewline || t.kind == tokenEnd || t.named("do") || t.named("end")
}

// arguments reads those of a statement, with parentheses or without.
func (p *parser) arguments() ([]value, error) {
	if !p.peek().is("(") {
		return p.list("")
	}
	p.take()
	args, err := p.list(")")
	if err == nil {
		err = p.want(")")
	}
	return args, err
}

// list reads values with commas between them up to a mark, or to the end of the line; keys with values become one table behind them.
func (p *parser) list(end string) ([]value, error) {
	over := func() bool {
		if end == "" {
			return p.ends(p.peek())
		}
		p.newlines()
		return p.peek().is(end) || p.peek().kind == tokenEnd
	}
	var all []value
	var named value
	for first := true; !over(); first = false {
		if !first {
			if err := p.want(","); err != nil {
				return nil, err
			}
			p.newlines()
			if over() { // a comma behind the last
				break
			}
		}
		one, isPair, err := p.element(0)
		switch {
		case err != nil:
			return nil, err
		case isPair:
			if err := named.add(one); err != nil {
				return nil, err
			}
		case named.kind == table:
			return nil, at(one.value.line, "a value without a key follows keys")
		default:
			all = append(all, one.value)
		}
	}
	if named.kind == table {
		all = append(all, named)
	}
	return all, nil
}

// add puts a pair into a table.
func (v *value) add(one pair) error {
	if _, there := v.find(one.key); there {
		return at(one.line, "the key %.80s is given twice", one.key)
	}
	if v.kind != table {
		v.kind, v.line = table, one.line
	}
	v.pairs = append(v.pairs, one)
	return nil
}

// element reads a value, or a key with its value.
func (p *parser) element(depth int) (one pair, isPair bool, err error) {
	if label := p.peek(); label.kind == tokenLabel {
		p.take()
		p.newlines()
		one = pair{key: label.text, line: label.line}
		one.value, err = p.value(depth)
		return one, true, err
	}
	v, err := p.value(depth)
	if err != nil || !p.peek().is("=>") {
		return pair{value: v}, false, err
	}
	p.take()
	p.newlines()
	one = pair{key: v.text, line: v.line}
	switch v.kind {
	case boolean:
		one.key = map[bool]string{true: "true", false: "false"}[v.yes]
	case text, symbol, number:
	case null, regex, list, table:
		return one, true, at(v.line, "a %s cannot be a key here", v.kind)
	}
	one.value, err = p.value(depth)
	return one, true, err
}

// value reads a literal; texts that follow each other, or are added, are one.
func (p *parser) value(depth int) (value, error) {
	v, err := p.literal(depth)
	for err == nil && v.kind == text && (p.peek().kind == tokenText || p.peek().is("+")) {
		if p.peek().is("+") {
			p.take()
			p.newlines()
		}
		var more value
		if more, err = p.literal(depth); err == nil && more.kind != text {
			err = at(more.line, "only a text can be added to a text")
		}
		v.text += more.text
		if len(v.text) > maxText {
			return v, at(v.line, "the text has more than %d bytes", maxText)
		}
	}
	return v, err
}

// maxText bounds a text that is put together of others.
const maxText = 1 << 20

func (p *parser) literal(depth int) (value, error) {
	t := p.take()
	v := value{line: t.line, text: t.text}
	if depth > maxDepth {
		return v, at(t.line, "values are nested more than %d deep", maxDepth)
	}
	switch {
	case t.kind == tokenText, t.kind == tokenSymbol:
		v.kind = map[tokenKind]kind{tokenText: text, tokenSymbol: symbol}[t.kind]
		return v, p.fill(&v, t)
	case t.kind == tokenNumber:
		v.kind = number
	case t.kind == tokenRegex:
		v.kind = regex
	case t.kind == tokenWords:
		v.kind = list
		for _, w := range t.words {
			v.elements = append(v.elements, value{line: w.line, kind: map[tokenKind]kind{tokenText: text, tokenSymbol: symbol}[w.kind], text: w.text})
		}
	case t.named("true"), t.named("false"):
		v.kind, v.yes = boolean, t.text == "true"
	case t.named("nil"):
		v.kind = null
	case t.is("["):
		return p.elements(v, "]", depth)
	case t.is("{"):
		return p.elements(v, "}", depth)
	case t.kind == tokenName:
		return p.variable(t)
	default:
		return v, at(t.line, "a literal value is expected here, not %s", t)
	}
	return v, nil
}

// elements reads a list or a table whose bracket is read.
func (p *parser) elements(v value, end string, depth int) (value, error) {
	v.kind, v.text = list, ""
	if end == "}" {
		v.kind = table
	}
	for {
		p.newlines()
		if p.peek().is(end) {
			p.take()
			return v, nil
		}
		one, isPair, err := p.element(depth + 1)
		switch {
		case err != nil:
			return v, err
		case isPair != (end == "}"):
			return v, at(p.peek().line, "keys with values stand in { }, values in [ ]")
		case isPair:
			if err := v.add(one); err != nil {
				return v, err
			}
		default:
			v.elements = append(v.elements, one.value)
		}
		p.newlines()
		if p.peek().is(",") {
			p.take()
		} else if !p.peek().is(end) {
			return v, at(p.peek().line, "%s or a comma is expected here, not %s", end, p.peek())
		}
	}
}

// fill puts variables into the places of a text.
func (p *parser) fill(v *value, t token) error {
	if t.parts == nil {
		return nil
	}
	var b strings.Builder
	for _, part := range t.parts {
		if !part.expression {
			b.WriteString(part.text)
			continue
		}
		words := strings.Split(part.text, ".")
		made, known := p.variables[words[0]]
		if !known {
			return at(t.line, "#{%.80s} is Ruby that is not executed here", part.text)
		}
		for _, method := range words[1:] {
			if made, known = applied(made, method); !known {
				return at(t.line, "#{%.80s} is Ruby that is not executed here", part.text)
			}
		}
		b.WriteString(made)
	}
	v.text = b.String()
	return nil
}

// variable reads a variable of a loop, perhaps with methods.
func (p *parser) variable(t token) (value, error) {
	v := value{line: t.line, kind: text}
	made, known := p.variables[t.text]
	if !known {
		return v, at(t.line, "`%.80s` is Ruby that is not executed here; write the value itself", t.text)
	}
	for p.peek().is(".") {
		p.take()
		method := p.take()
		if made, known = applied(made, method.text); !known || method.kind != tokenName {
			return v, at(method.line, "the method %s is not known here", method)
		}
	}
	v.text = made
	return v, nil
}

// applied is what a method makes of a text.
func applied(of, method string) (made string, known bool) {
	switch method {
	case "to_s", "to_sym", "intern":
		return of, true
	case "upcase":
		return strings.ToUpper(of), true
	case "downcase":
		return strings.ToLower(of), true
	case "capitalize":
		first, size := utf8.DecodeRuneInString(of)
		if size == 0 {
			return of, true
		}
		return string(unicode.ToUpper(first)) + strings.ToLower(of[size:]), true
	}
	return "", false
}

// loop reads [...].each do |name| ... end: its block once for each element.
func (p *parser) loop(each func(token) error) error {
	over, err := p.literal(0)
	if err != nil {
		return err
	}
	name, err := p.loopHead()
	if err != nil {
		return err
	}
	if len(over.elements) == 0 {
		return at(over.line, "a loop over nothing is not known here")
	}
	start, outer := p.next, p.variables
	defer func() { p.variables = outer }()
	for _, element := range over.elements {
		if p.count++; p.count > maxStatements {
			return at(over.line, "the DDL has more than %d statements", maxStatements)
		}
		if element.kind != text && element.kind != symbol && element.kind != number {
			return at(element.line, "a loop goes over texts, not over a %s", element.kind)
		}
		p.next, p.variables = start, maps.Clone(outer)
		if p.variables == nil {
			p.variables = map[string]string{}
		}
		p.variables[name] = element.text
		if err := p.statements("the loop", each); err != nil {
			return err
		}
	}
	return nil
}

// loopHead reads .each do |name|.
func (p *parser) loopHead() (name string, err error) {
	if err := p.want("."); err != nil {
		return "", err
	}
	if t := p.take(); !t.named("each") {
		return "", at(t.line, "only .each is known here, not %s", t)
	}
	if t := p.take(); !t.named("do") {
		return "", at(t.line, "do is expected behind each, not %s", t)
	}
	if err := p.want("|"); err != nil {
		return "", err
	}
	t := p.take()
	if t.kind != tokenName {
		return "", at(t.line, "the name of a variable is expected here, not %s", t)
	}
	return t.text, p.want("|")
}
