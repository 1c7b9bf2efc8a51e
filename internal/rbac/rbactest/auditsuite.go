package rbactest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// RunAuditStore checks a store of the audit log. open returns an empty one for
// each case; it cleans up through t.
func RunAuditStore(t *testing.T, open func(t *testing.T) rbac.AuditStore) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, rbac.AuditStore){
		"entries are kept and finished":       entryKept,
		"entries are chosen":                  entryChosen,
		"entries are listed by page":          entryPages,
		"entries past their time are dropped": entryPruned,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
	runChainStore(t, open)
}

func entryKept(t *testing.T, s rbac.AuditStore) {
	t.Helper()
	ctx := t.Context()
	want := rbac.Entry{
		At: start, ActorKind: fleet.UserActor, Actor: "ann", Token: "t1", Operation: "node.purge", Object: "web-1",
		Remote: "192.0.2.1", RequestID: "r1", Outcome: rbac.Started, Mark: rbac.BreakGlass,
	}
	var err error
	want.ID, err = s.RecordAct(ctx, want)
	check(t, err)
	found := func() {
		t.Helper()
		got, err := s.Acts(ctx, rbac.EntryFilter{Limit: 10})
		check(t, err)
		same(t, "entries", []rbac.Entry{want}, got)
	}
	found()
	check(t, s.FinishAct(ctx, want.ID, rbac.Failed, "there is none", start.Add(time.Second)))
	want.Outcome, want.Detail = rbac.Failed, "there is none"
	found()
	wantKind(t, "finish what there is not", s.FinishAct(ctx, want.ID+1, rbac.Done, "", start), fault.NotFound)
	wantKind(t, "finish it again", s.FinishAct(ctx, want.ID, rbac.Done, "", start), fault.Conflict)
	found()
}

// fill records one entry a minute.
func fill(t *testing.T, s rbac.AuditStore) {
	t.Helper()
	for i, e := range []rbac.Entry{
		{Actor: "ann", Operation: "node.purge", Outcome: rbac.Done},
		{Actor: "bob", Operation: "node.purge", Outcome: rbac.Denied},
		{Actor: "ann", Operation: "user.create", Outcome: rbac.Failed},
		{Actor: "ann", Operation: "user_x", Outcome: rbac.Started},
		{Actor: "bob", Operation: "user.delete", Outcome: rbac.Done},
	} {
		e.At, e.Object = start.Add(time.Duration(i)*time.Minute), fmt.Sprint(i)
		_, err := s.RecordAct(t.Context(), e)
		check(t, err)
	}
}

func objects(entries []rbac.Entry) (list string) {
	for _, e := range entries {
		list += e.Object
	}
	return list
}

func entryChosen(t *testing.T, s rbac.AuditStore) {
	t.Helper()
	fill(t, s)
	for want, filters := range map[string][]rbac.EntryFilter{
		"43210": {{}},
		"320":   {{Actor: "ann"}},
		"10":    {{Operation: "node.purge"}, {Operation: "node.*"}, {Until: start.Add(2 * time.Minute)}},
		"42":    {{Operation: "user.*"}},
		"":      {{Operation: "user."}, {Actor: "cid"}, {Operation: "%*"}, {Operation: "node_*"}},
		"43":    {{Since: start.Add(3 * time.Minute)}},
		"21":    {{Failing: true}},
		"1":     {{Outcome: rbac.Denied}, {Failing: true, Actor: "bob", Operation: "node.*", Since: start.Add(time.Minute)}},
	} {
		for _, f := range filters {
			f.Limit = 10
			got, err := s.Acts(t.Context(), f)
			check(t, err)
			same(t, fmt.Sprintf("%+v", f), want, objects(got))
		}
	}
}

func entryPages(t *testing.T, s rbac.AuditStore) {
	t.Helper()
	fill(t, s)
	var pages []string
	for before := int64(0); ; {
		entries, err := s.Acts(t.Context(), rbac.EntryFilter{Before: before, Limit: 2})
		check(t, err)
		pages = append(pages, objects(entries))
		if len(entries) < 2 {
			break
		}
		before = entries[1].ID
	}
	same(t, "pages", []string{"43", "21", "0"}, pages)
}

func entryPruned(t *testing.T, s rbac.AuditStore) {
	t.Helper()
	fill(t, s)
	n, err := s.PruneActs(t.Context(), start.Add(2*time.Minute), start.Add(time.Hour))
	check(t, err)
	same(t, "pruned", 2, n)
	got, err := s.Acts(t.Context(), rbac.EntryFilter{Limit: 10})
	check(t, err)
	same(t, "left", "432", objects(got))
}
