package query

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// counted are the sums over events, in the order in which they are selected.
var counted = [...]struct{ name, status string }{
	{"failures", "failure"}, {"successes", "success"}, {"noops", "noop"}, {"skips", "skipped"},
}

// subjects are the fields that tell what events are summed up for.
func subjects(summarizeBy string) ([]string, error) {
	switch summarizeBy {
	case "certname", "containing_class":
		return []string{summarizeBy}, nil
	case "resource":
		return []string{"resource_title", "resource_type"}, nil
	}
	return nil, fault.New(fault.Invalid, "Unsupported value for 'summarize_by': '%.80s'", summarizeBy)
}

// Sums is the statement that counts events for each subject.
func (t *Translation) Sums(q inventory.EventQuestion, by string) (string, error) {
	fields, err := subjects(by)
	if err != nil {
		return "", err
	}
	count := func(status string) string { return "count(CASE WHEN status = '" + status + "' THEN 1 END)" }
	if q.CountBy == "certname" {
		count = func(status string) string {
			return "count(DISTINCT CASE WHEN status = '" + status + "' THEN certname END)"
		}
	}
	names := append(slices.Clone(fields), "status")
	if q.CountBy == "certname" && by != "certname" {
		names = append(names, "certname")
	}
	var from string
	if by == "containing_class" && q.CountBy != "certname" {
		from = t.classes(q.Events.Query())
		count = func(status string) string {
			return "CAST(COALESCE(sum(CASE WHEN status = '" + status + "' THEN events END), 0) AS BIGINT)"
		}
	} else {
		from = "WITH e (" + strings.Join(names, ", ") + ") AS (" + t.Statement(eventQuery(q.Events.Query(), names)).Text + ")"
	}
	each := []string{fields[0] + " AS title", "CAST(NULL AS text) AS kind"}
	if len(fields) > 1 {
		each[1] = fields[1] + " AS kind"
	}
	for _, c := range counted {
		each = append(each, count(c.status)+" AS "+c.name)
	}
	text := from + " SELECT " + strings.Join(each, ", ") + " FROM e GROUP BY " + strings.Join(fields, ", ")
	text = "SELECT * FROM (" + text + ") s" + t.narrow(q.Counts)
	if q.Aggregate {
		return aggregated(text), nil
	}
	return "SELECT title, kind, failures, successes, noops, skips, 0 FROM (" + text + ") s" + orderSums(q.Order) +
		t.limits(&pql.Query{Limit: q.Limit, Offset: q.Offset}), nil
}

// classes counts events by class and status. Finding the class in a containment path costs more than the event, and paths are few.
func (t *Translation) classes(q *pql.Query) string {
	st := t.Statement(eventQuery(q, []string{"containment_path", "status"}))
	return "WITH s (containment, status) AS (" + st.Text + "), e (containing_class, status, events) AS (SELECT " + t.Words.innermostClass("containment") +
		", status, events FROM (SELECT containment, status, count(*) AS events FROM s GROUP BY containment, status) p)"
}

// eventQuery asks for what sums are made of.
func eventQuery(q *pql.Query, names []string) *pql.Query {
	inner := &pql.Query{Entity: "events", Where: q.Where}
	for _, name := range names {
		inner.Columns = append(inner.Columns, pql.Column{Field: pql.Field{Name: name}})
	}
	return inner
}

// narrow is the condition on the sums.
func (t *Translation) narrow(e pql.Expr) string {
	if e == nil {
		return ""
	}
	fields := map[string]sqlField{}
	for _, c := range counted {
		fields[c.name] = asA(asInt, c.name)
	}
	return " WHERE " + scope{Translation: t, entity: "event_counts", source: source{fields: fields}}.expr(e)
}

// aggregated counts subjects rather than events.
func aggregated(text string) string {
	var each []string
	for _, c := range counted {
		each = append(each, "count(CASE WHEN "+c.name+" > 0 THEN 1 END)")
	}
	return "SELECT NULL, NULL, " + strings.Join(each, ", ") + ", count(*) FROM (" + text + ") a"
}

func orderSums(order []pql.Order) string {
	var keys []string
	for _, o := range order {
		i := slices.IndexFunc(counted[:], func(c struct{ name, status string }) bool { return c.name == o.Field.Field.Name })
		if i < 0 {
			continue // it was checked
		}
		keys = append(keys, counted[i].name+map[bool]string{true: " DESC", false: ""}[o.Descending])
	}
	return " ORDER BY " + strings.Join(append(keys, "title", "kind"), ", ")
}
