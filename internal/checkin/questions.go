package checkin

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// maxAskedRows is how many rows one question of a compile may have.
const maxAskedRows = 200_000

// Questions is compile.Inventory: what code asks while it compiles is a query like
// anybody's, over the whole inventory, or over the nodes that a preview's author may see.
type Questions struct{ Asker inventory.Asker }

var _ compile.Inventory = Questions{}

// Exported implements compile.Inventory.
func (q Questions) Exported(ctx context.Context, c compile.Collector) ([]compile.Exported, error) {
	where := []pql.Expr{
		equals("type", pql.Text(c.Type)),
		equals("exported", pql.Value{Kind: pql.Boolean, Text: "true"}),
		equals("node_state", pql.Text("active")),
		pql.Not{Term: equals("certname", pql.Text(string(c.Node)))},
	}
	if filter := bytes.TrimSpace(c.Filter); len(filter) > 0 && string(filter) != "null" {
		parsed, err := pql.ParseAST(string(filter), "resources")
		if err != nil {
			return nil, err
		}
		if parsed.Where == nil || parsed.Entity != "resources" || parsed.Columns != nil || parsed.Limit != nil || parsed.Offset != nil {
			return nil, fault.New(fault.Invalid, "a collector's filter is a condition on resources, not %.200s", filter)
		}
		where = append(where, spelledOut(parsed.Where))
	}
	var found []compile.Exported
	err := q.ask(ctx, &pql.Query{
		Entity: "resources", Where: pql.And{Terms: where},
		Columns: []pql.Column{column("certname"), column("type"), column("title"), column("parameters")},
		OrderBy: []pql.Order{{Field: column("certname")}, {Field: column("title")}},
	}, c.Reach, c.MaxBytes, func(row json.RawMessage) error {
		var r compile.Exported
		err := json.Unmarshal(row, &r)
		found = append(found, r)
		return err
	})
	return found, err
}

// spelledOut says of each list that a parameter is held against what stands at its
// places: PuppetDB compares lists as a whole, and PQL only plain values.
func spelledOut(e pql.Expr) pql.Expr {
	each := func(terms []pql.Expr) []pql.Expr {
		out := make([]pql.Expr, len(terms))
		for i, term := range terms {
			out[i] = spelledOut(term)
		}
		return out
	}
	switch e := e.(type) {
	case pql.And:
		return pql.And{Terms: each(e.Terms)}
	case pql.Or:
		return pql.Or{Terms: each(e.Terms)}
	case pql.Not:
		return pql.Not{Term: spelledOut(e.Term)}
	case pql.Compare:
		if e.Value.Kind == pql.List && len(e.Value.List) > 0 && len(e.Field.Path) > 0 {
			return places(e)
		}
	}
	return e
}

// places holds when the list has these values and no more.
func places(c pql.Compare) pql.Expr {
	at := func(i int) pql.Field {
		field := c.Field
		field.Path = append(slices.Clip(field.Path), pql.Step{Kind: pql.Index, Index: int64(i)})
		return field
	}
	end := at(len(c.Value.List))
	terms := []pql.Expr{pql.Not{Term: pql.Or{Terms: []pql.Expr{pql.Null{Field: end, Is: true}, pql.Null{Field: end}}}}}
	for i, value := range c.Value.List {
		if value.Kind == pql.NullValue {
			terms = append(terms, pql.Null{Field: at(i), Is: true})
			continue
		}
		terms = append(terms, spelledOut(pql.Compare{Op: "=", Field: at(i), Value: value}))
	}
	return pql.And{Terms: terms}
}

// Query implements compile.Inventory.
func (q Questions) Query(ctx context.Context, query compile.Query) (json.RawMessage, error) {
	parsed, err := pql.Read(query.Text)
	if err != nil {
		return nil, err
	}
	var rows []json.RawMessage
	err = q.ask(ctx, parsed, query.Reach, query.MaxBytes, func(row json.RawMessage) error {
		rows = append(rows, bytes.Clone(row))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(parsed.OrderBy) == 0 && parsed.Limit == nil && parsed.Offset == nil {
		slices.SortFunc(rows, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	}
	return append(append([]byte{'['}, bytes.Join(asBytes(rows), []byte{','})...), ']'), nil
}

func asBytes(rows []json.RawMessage) [][]byte {
	list := make([][]byte, len(rows))
	for i, row := range rows {
		list[i] = row
	}
	return list
}

// ask answers a query whose rows have at most so many bytes together, with rows of nodes within reach.
func (q Questions) ask(ctx context.Context, query *pql.Query, reach string, maxBytes int64, each func(json.RawMessage) error) error {
	if reach != "" {
		nodes, err := pql.NodeCondition(reach)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "the condition on nodes that the preview's author may see cannot be read")
		}
		if query, err = pql.Within(query, nodes); err != nil {
			return err
		}
	}
	checked, err := pql.Check(query)
	if err != nil {
		return err
	}
	left := maxBytes
	return q.Asker.Ask(ctx, inventory.Question{Query: checked, MaxRows: maxAskedRows, Compiling: true}, func(row json.RawMessage) error {
		if left -= int64(len(row)) + 1; left < 0 {
			return fault.New(fault.Invalid, "the answer has more than %d bytes, which is all that one compile may have; ask for less", maxBytes)
		}
		return each(row)
	})
}

func column(name string) pql.Column { return pql.Column{Field: pql.Field{Name: name}} }

func equals(field string, value pql.Value) pql.Expr {
	return pql.Compare{Op: "=", Field: pql.Field{Name: field}, Value: value}
}
