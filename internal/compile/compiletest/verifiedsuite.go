package compiletest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunVerifications is the conformance suite of compile.Verifications, but for ClassSets, which is of catalogs.
func RunVerifications(t *testing.T, open func(t *testing.T) (ReuseBackend, compile.Verifications)) {
	t.Helper()
	for name, test := range map[string]func(b reuseBench, store compile.Verifications){
		"ListAndCount": testVerificationsAreListed, "Prune": testVerificationsArePruned, "Answers": testAnswersAreKept,
		"DoneOf": testDoneOf, "StopsOfAll": testStopsOfAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, store := open(t)
			test(reuseBench{bench{t, b.Backend}, b.Reusables, b.Gave}, store)
		})
	}
}

func (b reuseBench) verified(store compile.Verifications, v compile.Verification) compile.Verification {
	b.t.Helper()
	saved, err := store.SaveVerification(b.t.Context(), v)
	if err != nil {
		b.t.Fatal(err)
	}
	return saved
}

func (b reuseBench) verifications(store compile.Verifications, f compile.VerificationFilter) []compile.Verification {
	b.t.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	list, err := store.Verifications(b.t.Context(), f)
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func testVerificationsAreListed(b reuseBench, store compile.Verifications) {
	wrong := compile.Verification{
		Node: "a.example", Environment: env, Version: v1, Catalog: v2, Inputs: v1, Outcome: compile.Differs, Cause: compile.Sampled, Count: 30,
		Wall: time.Second, At: t0,
		Differences: []compile.Difference{{Resource: "File[/x]", What: "parameter content", Tutti: `"a"`, Plain: `"b"`}},
	}
	fine := compile.Verification{Node: "b.example", Environment: env, Version: v1, Catalog: v2, Outcome: compile.Same, Cause: compile.ByHand, At: t0.Add(minute)}
	other := compile.Verification{
		Node: "b.example", Environment: "other", Version: v2, Outcome: compile.NotComparable, Cause: compile.AfterDeploy, Reason: "it is volatile", At: t0,
	}
	wrong, fine, other = b.verified(store, wrong), b.verified(store, fine), b.verified(store, other)
	for name, test := range map[string]struct {
		filter compile.VerificationFilter
		want   []compile.Verification
	}{
		"all":         {compile.VerificationFilter{}, []compile.Verification{other, fine, wrong}},
		"node":        {compile.VerificationFilter{Node: "b.example"}, []compile.Verification{other, fine}},
		"environment": {compile.VerificationFilter{Environment: env}, []compile.Verification{fine, wrong}},
		"version":     {compile.VerificationFilter{Version: v2}, []compile.Verification{other}},
		"outcome":     {compile.VerificationFilter{Outcome: compile.Differs}, []compile.Verification{wrong}},
		"page":        {compile.VerificationFilter{Before: other.ID, Limit: 1}, []compile.Verification{fine}},
	} {
		if diff := cmp.Diff(test.want, b.verifications(store, test.filter)); diff != "" {
			b.t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	counts, err := store.CountVerifications(b.t.Context(), env, v1)
	if diff := cmp.Diff(map[compile.VerifyOutcome]int{compile.Differs: 1, compile.Same: 1}, counts); diff != "" || err != nil {
		b.t.Errorf("counts: %v (-want +got):\n%s", err, diff)
	}
}

func testVerificationsArePruned(b reuseBench, store compile.Verifications) {
	b.verified(store, compile.Verification{Node: "a.example", Environment: env, Version: v1, Outcome: compile.Same, Cause: compile.Sampled, At: t0})
	b.verified(store, compile.Verification{Node: "b.example", Environment: env, Version: v1, Outcome: compile.Same, Cause: compile.Sampled, At: t0.Add(minute)})
	n, err := store.PruneVerifications(b.t.Context(), t0.Add(minute))
	if left := b.verifications(store, compile.VerificationFilter{}); err != nil || n != 1 || len(left) != 1 || left[0].Node != "b.example" {
		b.t.Errorf("pruned %d, %v, left %+v", n, err, left)
	}
}

func testAnswersAreKept(b reuseBench, store compile.Verifications) {
	rows, lost := json.RawMessage(`[{"certname":"x"}]`), fleet.DigestOf([]byte("lost"))
	set := inputsOf("x.pp")
	digest := fleet.DigestOf(rows)
	set.Asked[0].Answer = digest
	set.Answers = map[fleet.Digest]json.RawMessage{digest: rows}
	b.compiled("a.example", v1, set, t0)
	b.compiled("b.example", v1, set, t0.Add(minute))
	ask := func() map[fleet.Digest]json.RawMessage {
		b.t.Helper()
		found, err := store.Answers(b.t.Context(), []fleet.Digest{digest, lost})
		if err != nil {
			b.t.Fatal(err)
		}
		return found
	}
	want := map[fleet.Digest]json.RawMessage{digest: rows}
	if diff := cmp.Diff(want, ask()); diff != "" {
		b.t.Errorf("answers (-want +got):\n%s", diff)
	}
	if _, err := b.Queue.Prune(b.t.Context(), t0.Add(24*time.Hour)); err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(want, ask()); diff != "" { // both are the newest of their nodes
		b.t.Errorf("answers after pruning (-want +got):\n%s", diff)
	}
}

func testDoneOf(b reuseBench, store compile.Verifications) {
	first := b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	b.compiled("a.example", v2, inputsOf("y.pp"), t0.Add(minute))
	b.compiled("b.example", v1, nil, t0)
	c, err := store.DoneOf(b.t.Context(), "a.example", env, v1)
	if err != nil || c.ID != first.ID {
		b.t.Fatalf("got %+v, %v", c, err)
	}
	if diff := cmp.Diff(inputsOf("x.pp"), c.Inputs); diff != "" {
		b.t.Errorf("inputs (-want +got):\n%s", diff)
	}
	for _, lookup := range []struct {
		node fleet.Certname
		env  fleet.Environment
	}{{"b.example", env}, {"c.example", env}, {"a.example", "other"}} {
		if _, err := store.DoneOf(b.t.Context(), lookup.node, lookup.env, v1); err == nil || fault.Of(err) != fault.NotFound {
			b.t.Errorf("%v: %v, want NotFound", lookup, err)
		}
	}
}

// A stop without a node is one of each node's.
func testStopsOfAll(b reuseBench, _ compile.Verifications) {
	all := compile.ReuseStop{Environment: env, Version: v1, At: t0, Differs: []string{"File[/x] parameter content"}}
	own := compile.ReuseStop{Node: "a.example", Environment: env, Version: v2, At: t0.Add(minute), Differs: []string{"File[/y]"}}
	for _, stop := range []compile.ReuseStop{all, own} {
		if err := b.Reusables.StopReuse(b.t.Context(), stop); err != nil {
			b.t.Fatal(err)
		}
	}
	of := map[fleet.Certname][]compile.ReuseStop{"a.example": {own, all}, "b.example": {all}}
	got, err := b.Reusables.ReuseStopsOf(b.t.Context(), env, []fleet.Certname{"a.example", "b.example"})
	if diff := cmp.Diff(of, got); diff != "" || err != nil {
		b.t.Errorf("stops of both: %v (-want +got):\n%s", err, diff)
	}
	for node, want := range of {
		got, err := b.Reusables.ReuseStops(b.t.Context(), node, env)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			b.t.Errorf("stops of %s: %v (-want +got):\n%s", node, err, diff)
		}
	}
}
