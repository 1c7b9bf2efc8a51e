package puppetdb

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// counts answers event-counts and aggregate-event-counts.
func (h *Handler) counts(w http.ResponseWriter, r *http.Request, t target, p params) error {
	q, err := countQuestion(t, p)
	if err != nil {
		return err
	}
	if p.total && !q.Aggregate {
		if err := h.countSubjects(w, r, q); err != nil {
			return err
		}
	}
	out := newStream(w, p.pretty, true)
	err = h.Asker.AskEvents(r.Context(), q, out.add)
	return h.end(r, out, err)
}

// countSubjects sets the header that tells how many rows there are in all.
func (h *Handler) countSubjects(w http.ResponseWriter, r *http.Request, q inventory.EventQuestion) error {
	q.Limit, q.Offset, q.Order = nil, nil, nil
	total := 0
	err := h.Asker.AskEvents(r.Context(), q, func(json.RawMessage) error {
		total++
		return nil
	})
	w.Header().Set("X-Records", strconv.Itoa(total))
	return err
}

func countQuestion(t target, p params) (inventory.EventQuestion, error) {
	q := inventory.EventQuestion{
		SummarizeBy: p.summarizeBy, CountBy: p.countBy, Order: p.orders, Limit: p.limit, Offset: p.offset,
		Aggregate: t.entity == "aggregate_event_counts", Gone: true,
	}
	for _, by := range q.SummarizeBy {
		if !slices.Contains([]string{"certname", "resource", "containing_class"}, by) {
			return q, fault.New(fault.Invalid, "Unsupported value for 'summarize_by': '%.80s'", by)
		}
	}
	if len(q.SummarizeBy) != 1 && !q.Aggregate {
		return q, fault.New(fault.Invalid, "'summarize_by' takes one of certname, resource and containing_class")
	}
	events, err := pql.ParseAST(p.query, "events")
	if err != nil {
		return q, err
	}
	if events.Entity != "events" || len(events.Columns) > 0 {
		return q, fault.New(fault.Invalid, "the query of %s is a condition on events", t.entity)
	}
	if q.Events, err = pql.Check(events); err != nil {
		return q, err
	}
	return q, counted(&q, p)
}

// counted checks what is asked of the sums.
func counted(q *inventory.EventQuestion, p params) error {
	sums := pql.LookUp("event_counts")
	for _, o := range q.Order {
		if name := o.Field.Field.Name; sums.Field(name) == nil {
			return fault.New(fault.Invalid, "Unrecognized column '%.80s' specified in :order_by; Supported columns are 'failures', 'successes', 'noops', 'skips'", name)
		}
	}
	if p.countsFilter == "" {
		return nil
	}
	filter, err := pql.ParseAST(p.countsFilter, "event_counts")
	if err != nil {
		return err
	}
	q.Counts = filter.Where
	return pql.CheckCondition("event_counts", filter.Where)
}
