package puppetdb

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

// target is what a path means.
type target struct {
	root   bool   // the query names its entity
	entity string // what is asked for
	where  []pql.Expr
	single bool         // one row, or 404
	kind   string       // what a 404 is about
	name   string       //
	parent *pql.Checked // must have rows, or 404
	pick   func(json.RawMessage) (json.RawMessage, error)
	shown  string // the only column, of reports' parts
	counts bool   // sums of events
	gone   bool   // nodes that are deactivated or expired count too
}

// thing is an entity that a path names one of.
type thing struct {
	entity, kind, key string
	under             []string // what belongs to it
	by                string   // the field of those that names it
}

// things are the entities of which a path may name one.
var things = map[string]thing{
	"nodes": {"nodes", "node", "certname", []string{"facts", "resources"}, "certname"},
	"environments": {
		"environments", "environment", "name", []string{"facts", "resources", "events", "reports", "catalogs", "factsets", "inventory"}, "environment",
	},
	"producers": {"producers", "producer", "name", []string{"catalogs", "factsets", "reports"}, "producer"},
	"factsets":  {"factsets", "factset", "certname", []string{"facts"}, "certname"},
	"catalogs":  {"catalogs", "catalog", "certname", []string{"edges", "resources"}, "certname"},
	"reports":   {"reports", "report", "hash", []string{"events", "metrics", "logs"}, "report"},
}

// locate finds out what a path means; its segments are separated by slashes.
func locate(path string) (target, error) {
	if path == "" {
		return target{root: true}, nil
	}
	segments := strings.Split(path, "/")
	entity := strings.ReplaceAll(segments[0], "-", "_")
	info := pql.LookUp(entity)
	if info == nil || strings.Contains(segments[0], "_") {
		return target{}, missing{"path", queryPrefix + "/" + path}
	}
	if info.Counts {
		return target{entity: entity, counts: true}, nil
	}
	if one, ok := things[segments[0]]; ok && len(segments) > 1 {
		return one.locate(segments[1:], path)
	}
	t := target{entity: entity, gone: showsGone(entity) || entity == "package_inventory" && len(segments) > 1}
	if entity == "fact_names" {
		t.pick = nameOnly
	}
	return t, t.narrow(segments[1:], path)
}

func (o thing) locate(segments []string, path string) (target, error) {
	t := target{kind: o.kind, name: segments[0]}
	if len(segments) == 1 {
		t.entity, t.single, t.where, t.gone = o.entity, true, []pql.Expr{equal(o.key, segments[0])}, true
		return t, nil
	}
	if !slices.Contains(o.under, segments[1]) {
		return t, missing{"path", queryPrefix + "/" + path}
	}
	parent, err := pql.Check(&pql.Query{Entity: o.entity, Where: equal(o.key, segments[0])})
	if err != nil {
		return t, err
	}
	t.parent, t.entity, t.where = &parent, segments[1], []pql.Expr{equal(o.by, segments[0])}
	t.gone = showsGone(t.entity) || o.entity == "factsets"
	if segments[1] == "metrics" || segments[1] == "logs" {
		t.entity, t.shown, t.single, t.where = "reports", segments[1], true, []pql.Expr{equal("hash", segments[0])}
		t.pick, t.gone = dataOf(t.shown), true
		return t, nil
	}
	return t, t.narrow(segments[2:], path)
}

// showsGone tells the addresses at which nodes count that are deactivated or
// expired. In a query at the root they do not.
func showsGone(entity string) bool {
	return entity == "catalogs" || entity == "reports" || entity == "events"
}

// narrow reads what may follow facts and resources, and a node's packages.
func (t *target) narrow(segments []string, path string) error {
	fields := map[string][]string{"facts": {"name", "value"}, "resources": {"type", "title"}, "package_inventory": {"certname"}}[t.entity]
	if t.entity == "resources" && len(segments) > 2 { // titles are often paths
		segments = []string{segments[0], strings.Join(segments[1:], "/")}
	}
	if len(segments) > len(fields) {
		return missing{"path", queryPrefix + "/" + path}
	}
	for i, segment := range segments {
		t.where = append(t.where, equal(fields[i], segment))
	}
	return nil
}

func equal(field, value string) pql.Expr {
	if unescaped, err := url.PathUnescape(value); err == nil {
		value = unescaped
	}
	return pql.Compare{Op: "=", Field: pql.Field{Name: field}, Value: pql.Text(value)}
}

// nameOnly makes a name of a row.
func nameOnly(row json.RawMessage) (json.RawMessage, error) {
	var r map[string]json.RawMessage
	if err := json.Unmarshal(row, &r); err != nil || len(r) != 1 || r["name"] == nil {
		return row, err
	}
	return r["name"], nil
}

// dataOf takes the list out of an expanded field.
func dataOf(field string) func(json.RawMessage) (json.RawMessage, error) {
	return func(row json.RawMessage) (json.RawMessage, error) {
		var r map[string]struct{ Data json.RawMessage }
		err := json.Unmarshal(row, &r)
		return r[field].Data, err
	}
}

// question puts path, query and parameters together.
func (t target) question(p params) (pql.Checked, error) {
	q, err := t.parse(p.query)
	if err != nil {
		return pql.Checked{}, err
	}
	if t.shown != "" {
		q.Columns = []pql.Column{{Field: pql.Field{Name: t.shown}}}
	}
	if len(t.where) > 0 {
		terms := t.where
		if q.Where != nil {
			terms = append(slices.Clone(terms), q.Where)
		}
		q.Where = pql.And{Terms: terms}
	}
	if p.limit != nil {
		q.Limit = p.limit
	}
	if p.offset != nil {
		q.Offset = p.offset
	}
	if len(p.orders) > 0 {
		q.OrderBy = p.orders
	}
	if t.entity == "fact_names" && len(q.Columns) == 0 && len(q.OrderBy) == 0 {
		q.OrderBy = []pql.Order{{Field: pql.Column{Field: pql.Field{Name: "name"}}}}
	}
	return pql.Check(q)
}

func (t target) parse(query string) (*pql.Query, error) {
	switch {
	case !t.root:
		q, err := pql.ParseAST(query, t.entity)
		if err == nil && q.Entity != t.entity {
			err = fault.New(fault.Invalid, "this address answers queries on %s, not on %s", t.entity, q.Entity)
		}
		return q, err
	case query == "":
		return nil, fault.New(fault.Invalid, "Missing required query parameter 'query'")
	default:
		return pql.Read(query)
	}
}
