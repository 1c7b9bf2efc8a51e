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

// Nodes that have some facts are found in a table of those nodes. PostgreSQL would rather go through the facts once for each node.
func TestNodesByTheirFactsAreLookedUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		q := checked(t, `nodes[certname] { facts { name = "role" and value = "web" } and facts { name = "dc" and value = "one" } }`)
		if plan := explainPlan(t, s, q.Query()); s.dialect.postgres && strings.Contains(plan, "Join Filter: (n1.id") {
			t.Errorf("the plan compares each node with each:\n%s", plan)
		}
	})
}
