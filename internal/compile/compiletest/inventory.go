package compiletest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pql"
)

// Inventory is a compile.Inventory over resources in memory. Queries may ask for
// resources, with and, or, not and =; all fields or some.
type Inventory struct {
	mu        sync.Mutex
	resources []Resource
	inactive  map[fleet.Certname]bool
	fail      error
	questions int
	opened    chan struct{} // of questions that hang
	hang      bool
}

var _ compile.Inventory = (*Inventory)(nil)

// Resource is a resource of a node's newest catalog.
type Resource struct {
	Node        fleet.Certname    `json:"certname"`
	Environment fleet.Environment `json:"environment"`
	Type        string            `json:"type"`
	Title       string            `json:"title"`
	Tags        []string          `json:"tags"`
	Exported    bool              `json:"exported"`
	Parameters  json.RawMessage   `json:"parameters"`
}

// NewInventory returns an empty inventory.
func NewInventory() *Inventory {
	return &Inventory{inactive: map[fleet.Certname]bool{}, opened: make(chan struct{}, 100)}
}

// Replace makes resources all that a node's catalog holds.
func (i *Inventory) Replace(node fleet.Certname, resources ...Resource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resources = slices.DeleteFunc(i.resources, func(r Resource) bool { return r.Node == node })
	for _, r := range resources {
		r.Node = node
		i.resources = append(i.resources, r)
	}
}

// Deactivate takes a node out of use.
func (i *Inventory) Deactivate(node fleet.Certname) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inactive[node] = true
}

// Fail makes every question end with err until it is called with nil.
func (i *Inventory) Fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail = err
}

// Hang makes every question wait for its context's end. Opened gets a value for
// each that does.
func (i *Inventory) Hang(hang bool) (opened <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hang = hang
	return i.opened
}

// Questions is how many were asked.
func (i *Inventory) Questions() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.questions
}

// begin counts a question.
func (i *Inventory) begin(ctx context.Context) error {
	i.mu.Lock()
	i.questions++
	fail, hang := i.fail, i.hang
	i.mu.Unlock()
	if fail == nil {
		fail = ctx.Err()
	}
	if hang {
		i.opened <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return fail
}

// Exported implements compile.Inventory.
func (i *Inventory) Exported(ctx context.Context, c compile.Collector) ([]compile.Exported, error) {
	if err := i.begin(ctx); err != nil {
		return nil, err
	}
	var filter pql.Expr
	var err error
	if text := bytes.TrimSpace(c.Filter); len(text) > 0 && string(text) != "null" {
		q, err := pql.ParseAST(string(text), "resources")
		if err != nil {
			return nil, err
		}
		if filter = q.Where; filter == nil {
			return nil, fault.New(fault.Invalid, "%s is no condition", text)
		}
	}
	if filter, err = within(filter, c.Reach); err != nil {
		return nil, err
	}
	rows, err := i.find(filter, func(r Resource) bool { return r.Exported && r.Type == c.Type && r.Node != c.Node })
	if err != nil {
		return nil, err
	}
	var found []compile.Exported
	left := c.MaxBytes
	for _, r := range rows {
		left -= int64(len(r.Parameters))
		found = append(found, compile.Exported{Exporter: r.Node, Type: r.Type, Title: r.Title, Parameters: r.Parameters})
	}
	if left < 0 {
		return nil, fault.New(fault.Invalid, "the answer has more than %d bytes", c.MaxBytes)
	}
	return found, nil
}

// Query implements compile.Inventory.
func (i *Inventory) Query(ctx context.Context, q compile.Query) (json.RawMessage, error) {
	if err := i.begin(ctx); err != nil {
		return nil, err
	}
	parsed, err := pql.Read(q.Text)
	if err != nil {
		return nil, err
	}
	if _, err := pql.Check(parsed); err != nil {
		return nil, err
	}
	if parsed.Entity != "resources" {
		return nil, fault.New(fault.Invalid, "the fake knows resources, not %s", parsed.Entity)
	}
	where, err := within(parsed.Where, q.Reach)
	if err != nil {
		return nil, err
	}
	found, err := i.find(where, func(Resource) bool { return true })
	if err != nil {
		return nil, err
	}
	rows := make([]map[string]any, len(found))
	for n, r := range found {
		rows[n] = map[string]any{}
		for _, name := range parsed.Names() {
			field := pql.Field{Name: name}
			if rows[n][name], err = r.field(field); err != nil && len(parsed.Columns) > 0 {
				return nil, err
			}
			if name == "parameters" {
				rows[n][name] = r.Parameters // in their own order
			}
		}
	}
	text, err := json.Marshal(rows)
	if err == nil && int64(len(text)) > q.MaxBytes {
		err = fault.New(fault.Invalid, "the answer has more than %d bytes", q.MaxBytes)
	}
	return text, err
}

// within adds a reach, which may name nothing but nodes here, to a condition.
func within(where pql.Expr, reach string) (pql.Expr, error) {
	if reach == "" {
		return where, nil
	}
	nodes, err := pql.NodeCondition(reach)
	if err != nil || where == nil {
		return nodes, err
	}
	return pql.And{Terms: []pql.Expr{where, nodes}}, nil
}

// find lists resources of active nodes by node and title.
func (i *Inventory) find(where pql.Expr, also func(Resource) bool) ([]Resource, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var found []Resource
	for _, r := range i.resources {
		matches, err := r.matches(where)
		if err != nil {
			return nil, err
		}
		if matches && also(r) && !i.inactive[r.Node] {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b Resource) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Title, b.Title)) })
	return found, nil
}

func (r Resource) matches(e pql.Expr) (bool, error) {
	switch e := e.(type) {
	case nil:
		return true, nil
	case pql.And:
		return r.all(e.Terms, true)
	case pql.Or:
		return r.all(e.Terms, false)
	case pql.Not:
		ok, err := r.matches(e.Term)
		return !ok, err
	case pql.Compare:
		value, err := r.field(e.Field)
		if err != nil {
			return false, err
		}
		if tags, ok := value.([]string); ok {
			return slices.Contains(tags, strings.ToLower(e.Value.Text)), nil
		}
		var want any
		text := []byte(e.Value.String())
		return json.Unmarshal(text, &want) == nil && reflect.DeepEqual(value, want), nil
	}
	return false, fault.New(fault.Invalid, "the fake does not know %T", e)
}

// all says whether every term is as wanted, or none is.
func (r Resource) all(terms []pql.Expr, want bool) (bool, error) {
	for _, term := range terms {
		if ok, err := r.matches(term); err != nil || ok != want {
			return !want && err == nil, err
		}
	}
	return want, nil
}

func (r Resource) field(f pql.Field) (any, error) {
	switch f.Name {
	case "certname":
		return string(r.Node), nil
	case "environment":
		return string(r.Environment), nil
	case "type":
		return r.Type, nil
	case "title":
		return r.Title, nil
	case "tag", "tags":
		return r.Tags, nil
	case "exported":
		return r.Exported, nil
	case "parameters":
		var all map[string]any
		if err := json.Unmarshal(r.Parameters, &all); err != nil {
			return nil, err
		}
		if len(f.Path) == 1 {
			return all[f.Path[0].Text], nil
		}
		return all, nil
	}
	return nil, fault.New(fault.Invalid, "the fake has no field %s", fmt.Sprint(f))
}
