package ddl

import "maps"

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
	made      int               // bytes of texts that were put together
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
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
