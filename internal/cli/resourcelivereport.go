package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pql"
)

// liveReport is what the last reports of nodes say of a resource, of all nodes of which they say the same.
type liveReport struct {
	Status     string          `json:"status"` // of an event; or one of the two below
	Property   string          `json:"property,omitempty"`
	Old        json.RawMessage `json:"old,omitempty"`
	New        json.RawMessage `json:"new,omitempty"`
	Corrective bool            `json:"corrective,omitempty"`
	Nodes      int             `json:"nodes"`
	Examples   []string        `json:"examples"`
}

// What a report says by silence, and what no report says.
const (
	reportNothing = "nothing"   // the report has no event of the resource: the run left it as it was, or did not manage it
	reportNone    = "no report" // the node has none
)

// reportWord is what the last report of one node says in one event.
type reportWord struct {
	node       fleet.Certname
	parameters json.RawMessage // as the node has them now
	liveReport
}

// readReports notes what the last reports of the nodes that answered say.
func (d *drift) readReports(ctx context.Context, client *api.Client, title string) error {
	if len(d.live) == 0 {
		return nil
	}
	with := map[fleet.Certname]bool{}
	has := pql.Null{Field: pql.Field{Name: "report_timestamp"}, Is: false}
	q := &pql.Query{Entity: "nodes", Where: pql.And{Terms: d.ofNodes(has)}, Columns: []pql.Column{column("certname")}}
	err := client.Rows(ctx, api.QueryRequest{Query: q.AST()}, func(api.QueryAnswer) error { return nil }, func(text json.RawMessage) error {
		var row struct {
			Certname fleet.Certname `json:"certname"`
		}
		err := json.Unmarshal(text, &row)
		with[row.Certname] = true
		return err
	})
	if err != nil {
		return err
	}
	told := map[fleet.Certname]map[string]bool{}
	is := func(name string, value pql.Value) pql.Expr {
		return pql.Compare{Op: "=", Field: pql.Field{Name: name}, Value: value}
	}
	where := []pql.Expr{is("latest_report?", pql.Value{Kind: pql.Boolean, Text: "true"}), is("resource_type", pql.Text(d.kind))}
	if title != "" {
		where = append(where, is("resource_title", pql.Text(title)))
	}
	q = &pql.Query{Entity: "events", Where: pql.And{Terms: d.ofNodes(where...)}, Columns: []pql.Column{
		column("certname"), column("resource_title"), column("property"), column("status"), column("old_value"), column("new_value"), column("corrective_change"),
	}}
	err = client.Rows(ctx, api.QueryRequest{Query: q.AST()}, func(api.QueryAnswer) error { return nil }, func(text json.RawMessage) error {
		var row struct {
			Certname   fleet.Certname  `json:"certname"`
			Title      string          `json:"resource_title"`
			Property   string          `json:"property"`
			Status     string          `json:"status"`
			Old        json.RawMessage `json:"old_value"`
			New        json.RawMessage `json:"new_value"`
			Corrective bool            `json:"corrective_change"`
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		live, ok := d.live[row.Certname][row.Title]
		if !ok {
			return nil
		}
		if told[row.Certname] == nil {
			told[row.Certname] = map[string]bool{}
		}
		told[row.Certname][row.Title] = true
		word := liveReport{Status: row.Status, Property: row.Property, Old: row.Old, New: row.New, Corrective: row.Corrective}
		d.words[row.Title] = append(d.words[row.Title], reportWord{row.Certname, live, word})
		return nil
	})
	for node, resources := range d.live {
		for title, live := range resources {
			if told[node][title] {
				continue
			}
			word := liveReport{Status: reportNothing}
			if !with[node] {
				word.Status = reportNone
			}
			d.words[title] = append(d.words[title], reportWord{node, live, word})
		}
	}
	return err
}

// ofNodes adds to conditions that a row is of a node that answered.
func (d *drift) ofNodes(where ...pql.Expr) []pql.Expr {
	if len(d.live) > maxNodesNamed {
		return where
	}
	names := pql.In{Fields: []pql.Field{{Name: "certname"}}}
	for node := range d.live {
		names.Values = append(names.Values, pql.Text(string(node)))
	}
	return append(where, names)
}

// reported sums up what reports say of a resource: of all nodes, or of those that have it with these parameters now.
func (d *drift) reported(title string, parameters json.RawMessage) []liveReport {
	var all []liveReport
	for _, word := range d.words[title] {
		if parameters != nil && string(parameters) != string(word.parameters) {
			continue
		}
		i := slices.IndexFunc(all, func(one liveReport) bool { return one.same(word.liveReport) })
		if i < 0 {
			i = len(all)
			all = append(all, word.liveReport)
		}
		all[i].Nodes++
		all[i].Examples = append(all[i].Examples, string(word.node))
	}
	for i := range all {
		slices.Sort(all[i].Examples)
		all[i].Examples = all[i].Examples[:min(len(all[i].Examples), 5)]
	}
	slices.SortFunc(all, func(a, b liveReport) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(b.Property, a.Property), cmp.Compare(a.Status, b.Status), cmp.Compare(string(a.New), string(b.New)),
			cmp.Compare(string(a.Old), string(b.Old)))
	})
	return all
}

func (r liveReport) same(other liveReport) bool {
	return r.Status == other.Status && r.Property == other.Property && string(r.Old) == string(other.Old) && string(r.New) == string(other.New) &&
		r.Corrective == other.Corrective
}

// reportText is a cell of the table.
func reportText(all []liveReport) string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = r.text() + " on " + fault.Count(r.Nodes, "node")
	}
	return strings.Join(texts, "; ")
}

func (r liveReport) text() string {
	if r.Status == reportNothing || r.Status == reportNone {
		return r.Status
	}
	text := r.Status
	if r.Corrective {
		text = "corrective " + text
	}
	if r.Property != "" {
		text += fmt.Sprintf(": %s from %s to %s", r.Property, valueText(r.Old), valueText(r.New))
	}
	return text
}
