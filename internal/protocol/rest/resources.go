package rest

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/catalog/variants"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// resourceType is the spelling of types in catalogs.
var resourceType = regexp.MustCompile(`^[A-Z][a-z0-9_]*(::[A-Z][a-z0-9_]*)*$`)

func (h *questions) compareResources(ctx context.Context, request api.ResourceVariantsRequest) (api.List[api.ResourceComparison], error) {
	list := api.List[api.ResourceComparison]{Items: []api.ResourceComparison{}}
	if !resourceType.MatchString(request.Type) {
		return list, fault.New(fault.Invalid, "a type like File or Apache::Vhost is expected, not %.80q", request.Type)
	}
	checked, err := resourcesOf(request)
	if err != nil {
		return list, err
	}
	var comparer variants.Comparer
	err = h.inventory.Ask(ctx, inventory.Question{Query: checked}, func(text json.RawMessage) error {
		var row struct {
			Certname   fleet.Certname  `json:"certname"`
			Title      string          `json:"title"`
			Parameters json.RawMessage `json:"parameters"`
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		return comparer.Add(row.Certname, row.Title, row.Parameters)
	})
	if err != nil {
		return list, err
	}
	comparisons, err := comparer.Comparisons()
	for _, c := range comparisons {
		list.Items = append(list.Items, c.ForAPI(request.Type, request.Title != ""))
	}
	return list, err
}

// resourcesOf asks for the resources that are compared.
func resourcesOf(request api.ResourceVariantsRequest) (pql.Checked, error) {
	is := func(name, text string) pql.Expr {
		return pql.Compare{Op: "=", Field: pql.Field{Name: name}, Value: pql.Text(text)}
	}
	terms := []pql.Expr{is("type", request.Type)}
	if request.Title != "" {
		terms = append(terms, is("title", request.Title))
	}
	if request.Where != "" {
		where, err := pql.NodeCondition(request.Where)
		if err != nil {
			return pql.Checked{}, err
		}
		terms = append(terms, pql.Subquery{Query: &pql.Query{Entity: "nodes", Where: where}})
	}
	q := &pql.Query{Entity: "resources", Where: pql.And{Terms: terms}}
	for _, name := range []string{"certname", "title", "parameters"} {
		q.Columns = append(q.Columns, pql.Column{Field: pql.Field{Name: name}})
	}
	return pql.Check(q)
}
