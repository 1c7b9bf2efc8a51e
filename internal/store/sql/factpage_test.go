package sql

import (
	"strings"
	"testing"
)

// A page of facts deep in looks up who has which fact, in the page's order. PostgreSQL would rather read the facts of all nodes, and sort them.
func TestPagesOfFactsReadNoFactsOfOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		q := checked(t, `["from","facts",["extract",["certname","name","value"]],["order_by",["name","certname"]],["limit",50],["offset",10000]]`)
		plan := explainPlan(t, s, q.Query())
		want := "CORRELATED SCALAR SUBQUERY"
		if s.dialect.postgres {
			want = "Join Filter: (SubPlan"
		}
		if !strings.Contains(plan, want) {
			t.Errorf("the plan has no %q:\n%s", want, plan)
		}
	})
}
