package pql

import "strings"

// condition reads one form of the AST that holds or does not.
func (a astReader) condition(n node) (Expr, *Error) {
	head := n.head()
	if n.kind == List && len(n.items) == 0 {
		return nil, wrong(n.pos, "[] is not well-formed: queries must contain at least one operator")
	}
	if head == "" {
		return nil, wrong(n.pos, "a condition is an array that begins with an operator")
	}
	args := n.items[1:]
	switch head {
	case "and", "or":
		return a.junction(n, head, args)
	case "not":
		if len(args) != 1 {
			return nil, wrong(n.pos, "'not' takes exactly one argument, but %d were supplied", len(args))
		}
		term, err := a.condition(args[0])
		return Not{term}, err
	case "=", ">", "<", ">=", "<=", "~", "~>":
		return a.compare(n, head, args)
	case "null?":
		return a.null(n, args)
	case "in":
		return a.in(n, args)
	case "subquery":
		return a.subquery(n, args)
	}
	return nil, wrong(n.items[0].pos, "'%s' is not an operator", head)
}

func (a astReader) junction(n node, head string, args []node) (Expr, *Error) {
	if len(args) == 0 {
		return nil, wrong(n.pos, "'%s' takes at least one argument, but none were supplied", head)
	}
	terms := make([]Expr, len(args))
	for i, arg := range args {
		var err *Error
		if terms[i], err = a.condition(arg); err != nil {
			return nil, err
		}
	}
	if len(terms) == 1 {
		return terms[0], nil
	}
	if head == "and" {
		return And{terms}, nil
	}
	return Or{terms}, nil
}

func (a astReader) compare(n node, op string, args []node) (Expr, *Error) {
	if len(args) != 2 {
		return nil, wrong(n.pos, "%s requires exactly two arguments", op)
	}
	value := args[1].value()
	if args[0].head() == "fact" && len(args[0].items) == 2 {
		name := Compare{Op: "=", Field: Field{Pos: args[0].pos, Name: "name"}, Value: args[0].items[1].value(), Pos: n.pos}
		fact := Compare{Op: op, Field: Field{Pos: args[0].pos, Name: "value"}, Value: value, Pos: n.pos}
		return Subquery{&Query{Pos: n.pos, Entity: "facts", Where: And{[]Expr{name, fact}}}}, nil
	}
	f, err := a.field(args[0])
	if op == "=" && value.Kind == NullValue {
		return Null{n.pos, f, true}, err // as PuppetDB reads it
	}
	return Compare{n.pos, op, f, value}, err
}

// value turns JSON into a literal.
func (n node) value() Value {
	v := Value{Pos: n.pos, Kind: n.kind, Text: n.text}
	if n.kind == List {
		v.List = make([]Value, len(n.items))
		for i, item := range n.items {
			v.List[i] = item.value()
		}
	}
	return v
}

func (a astReader) null(n node, args []node) (Expr, *Error) {
	if len(args) != 2 || args[1].kind != Boolean {
		return nil, wrong(n.pos, "null? takes a field, and true or false")
	}
	f, err := a.field(args[0])
	return Null{n.pos, f, args[1].text == "true"}, err
}

// in = ["in", field | [field…], ["array", […]] | ["from", …] | ["extract", …, ["select_ENTITY", …]]]
func (a astReader) in(n node, args []node) (Expr, *Error) {
	if len(args) != 2 {
		return nil, wrong(n.pos, "in requires exactly two arguments")
	}
	e := In{Pos: n.pos}
	fields := []node{args[0]}
	if args[0].kind == List && args[0].head() != "parameter" {
		fields = args[0].items
	}
	for _, item := range fields {
		f, err := a.field(item)
		if err != nil {
			return nil, err
		}
		e.Fields = append(e.Fields, f)
	}
	source := args[1]
	var err *Error
	switch source.head() {
	case "array":
		if len(source.items) != 2 || source.items[1].kind != List {
			return nil, wrong(source.pos, "'array' takes a list of values")
		}
		e.Values = source.items[1].value().List
	case "from":
		e.Query, err = a.from(source)
	case "extract":
		e.Query, err = a.selection(source)
	default:
		return nil, wrong(source.pos, "what follows 'in' begins with array, from or extract")
	}
	return e, err
}

// selection is the older form: ["extract", fields, ["select_facts", condition]].
func (a astReader) selection(n node) (*Query, *Error) {
	if len(n.items) != 3 {
		return nil, wrong(n.pos, "'extract' below 'in' takes fields and a select_ form")
	}
	from := n.items[2]
	name, ok := strings.CutPrefix(from.head(), "select_")
	name = entityWord(name)
	if ok && LookUp(name) == nil {
		return nil, wrong(from.pos, "Unsupported subquery `%s`", from.head())
	}
	if !ok || len(from.items) > 2 {
		return nil, wrong(from.pos, "the last argument of 'extract' is [\"select_ENTITY\", condition]")
	}
	q := &Query{Pos: n.pos, Entity: name}
	var err *Error
	if q.Columns, err = a.columns(n.items[1]); err != nil {
		return nil, err
	}
	if len(from.items) == 2 {
		q.Where, err = a.condition(from.items[1])
	}
	return q, err
}

// subquery = ["subquery", entity, condition?]
func (a astReader) subquery(n node, args []node) (Expr, *Error) {
	if len(args) < 1 || len(args) > 2 || args[0].kind != String {
		return nil, wrong(n.pos, "'subquery' takes an entity and a condition")
	}
	q := &Query{Pos: n.pos, Entity: entityWord(args[0].text)}
	if LookUp(q.Entity) == nil {
		return nil, wrong(args[0].pos, "Invalid entity '%s' in query", args[0].text)
	}
	var err *Error
	if len(args) == 2 {
		err = a.body(q, args[1])
	}
	return Subquery{q}, err
}
