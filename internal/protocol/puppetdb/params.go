package puppetdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

// maxBody is the largest body of a request.
const maxBody = pql.MaxBytes + 64<<10

// params are what a request asks for besides its path.
type params struct {
	query          string
	limit, offset  *int64
	orders         []pql.Order
	total, pretty  bool
	astOnly        bool
	summarizeBy    []string
	countBy        string
	countsFilter   string
	hasSummarizeBy bool
}

// accepted without effect: they ask for how PuppetDB should work, or for what
// Tutti has no data for.
var ignored = []string{
	"origin", "timeout", "optimize_drop_unused_joins", "include_facts_expiration", "include_package_inventory", "explain",
}

// readParams reads the address, and the body of a POST.
func readParams(r *http.Request, t target) (params, error) {
	values := map[string]any{}
	for name, list := range r.URL.Query() {
		values[name] = list[0]
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
		if err != nil {
			if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
				return params{}, fault.New(fault.Invalid, "the body is larger than %d bytes", large.Limit)
			}
			return params{}, fault.Wrap(fault.Invalid, err, "the body cannot be read")
		}
		if err := json.Unmarshal(body, &values); err != nil {
			return params{}, fault.New(fault.Invalid, "Json parse error: the body must be an object like {\"query\": ...}: %v", err)
		}
	}
	var p params
	for _, name := range sorted(values) {
		if err := p.set(name, values[name], t); err != nil {
			return p, err
		}
	}
	if t.counts && !p.hasSummarizeBy {
		return p, fault.New(fault.Invalid, "Missing required query parameter 'summarize_by'")
	}
	return p, nil
}

func sorted(values map[string]any) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (p *params) set(name string, value any, t target) (err error) {
	switch {
	case name == "query":
		p.query = asText(value)
	case name == "limit":
		p.limit, err = count(value, 1, "limit", "positive non-zero")
	case name == "offset":
		p.offset, err = count(value, 0, "offset", "non-negative")
	case name == "order_by":
		p.orders, err = orders(value)
	case name == "include_total":
		p.total = isTrue(value)
	case name == "pretty":
		p.pretty = isTrue(value)
	case name == "ast_only" && t.root:
		p.astOnly = isTrue(value)
	case name == "summarize_by" && t.counts:
		p.summarizeBy, p.hasSummarizeBy = strings.Split(asText(value), ","), true
	case name == "count_by" && t.counts:
		p.countBy = asText(value)
		if p.countBy != "resource" && p.countBy != "certname" {
			err = fault.New(fault.Invalid, "Unsupported value for 'count_by': '%.80s'", p.countBy)
		}
	case name == "counts_filter" && t.counts:
		p.countsFilter = asText(value)
	case name == "explain" && value != "analyze":
		err = fault.New(fault.Invalid, "Illegal value '%.80s' for :explain; expected `analyze`.", asText(value))
	case slices.Contains(ignored, name):
	default:
		err = fault.New(fault.Invalid, "Unsupported query parameter '%.80s'", name)
	}
	return err
}

// asText is a parameter's text; a body may hold JSON in its place.
func asText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	if value == nil {
		return ""
	}
	text, _ := json.Marshal(value) // it came from JSON
	return string(text)
}

func isTrue(value any) bool { return value == true || value == "true" }

func count(value any, least int64, name, kind string) (*int64, error) {
	n, err := strconv.ParseInt(asText(value), 10, 64)
	if err != nil || n < least {
		return nil, fault.New(fault.Invalid, "Illegal value '%.80s' for :%s; expected a %s integer.", asText(value), name, kind)
	}
	return &n, nil
}

// orders reads [{"field": …, "order": "asc"|"desc"}, …], in a GET as a string.
func orders(value any) ([]pql.Order, error) {
	var list []struct {
		Field string `json:"field"`
		Order string `json:"order"`
	}
	text := asText(value)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fault.New(fault.Invalid, "Illegal value '%.200s' for :order_by; expected a JSON array of maps.", text)
	}
	out := []pql.Order{}
	for _, item := range list {
		direction := strings.ToLower(item.Order)
		if item.Field == "" {
			return nil, fault.New(fault.Invalid, "Illegal value '%.200s' in :order_by; missing required key 'field'.", text)
		}
		if direction != "" && direction != "asc" && direction != "desc" {
			return nil,
				fault.New(fault.Invalid, "Illegal value '{:field \"%.80s\", :order \"%.80s\"}' in :order_by; 'order' must be either 'asc' or 'desc'",
					item.Field, item.Order)
		}
		q, err := pql.ParseAST(fmt.Sprintf(`["from","nodes",["order_by",[%s]]]`, quoted(item.Field)), "")
		if err != nil {
			return nil, err
		}
		o := q.OrderBy[0]
		o.Descending = direction == "desc"
		out = append(out, o)
	}
	return out, nil
}

func quoted(text string) string {
	out, _ := json.Marshal(text) // a string always marshals
	return string(out)
}
