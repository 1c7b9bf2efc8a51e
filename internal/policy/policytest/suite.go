package policytest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
)

// RunStore runs the conformance suite of policy.Store. open returns an empty store that the test owns.
func RunStore(t *testing.T, open func(t *testing.T) policy.Store) {
	t.Helper()
	t.Run("policies have versions", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		a := policy.Definition{
			Environments: []fleet.Environment{"production"}, Effect: policy.Approve, Role: "lead", AuthorMay: true, Message: "Ünï",
			When: `change.type == "User"`, Zone: "Europe/Berlin",
		}
		b := policy.Definition{Effect: policy.Deny, Message: "no", When: "true"}
		versions(t, kept[policy.Rule]{
			prune: s.PruneRules, save: s.SavePolicy, list: s.Policies, history: s.PolicyHistory,
			rule: func(name string, stamp fleet.Stamp, second bool) policy.Rule {
				return policy.Rule{Name: name, Stamp: stamp, Definition: map[bool]policy.Definition{false: a, true: b}[second]}
			},
		})
	})
	t.Run("freezes have versions", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		a := policy.Freezing{From: when(100), To: when(200), Zone: "UTC", Why: "a move"}
		b := policy.Freezing{Environments: []fleet.Environment{"production", "test"}, Weekly: "fri 16:00-mon 06:00", Zone: "Europe/Berlin", Why: "Ünï"}
		versions(t, kept[policy.Freeze]{
			prune: s.PruneRules, save: s.SaveFreeze, list: s.Freezes, history: s.FreezeHistory,
			rule: func(name string, stamp fleet.Stamp, second bool) policy.Freeze {
				return policy.Freeze{Name: name, Stamp: stamp, Freezing: map[bool]policy.Freezing{false: a, true: b}[second]}
			},
		})
	})
}

// when is a time that every store can keep.
func when(second int) time.Time { return time.Date(2026, 11, 22, 8, 0, second, 654321000, time.UTC) }

// kept is one of the two things that a store keeps.
type kept[R any] struct {
	save    func(context.Context, R) (R, error)
	list    func(context.Context) ([]R, error)
	history func(context.Context, string) ([]R, error)
	prune   func(ctx context.Context, before time.Time, keep int) (int, error)
	rule    func(name string, stamp fleet.Stamp, second bool) R
}

func versions[R any](t *testing.T, k kept[R]) {
	t.Helper()
	ctx := t.Context()
	same := func(what string, want, got any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	stamp := func(version, second int, removed bool) fleet.Stamp {
		return fleet.Stamp{Version: version, Author: "ann", At: when(second), Removed: removed}
	}
	list := func(what string, want ...R) {
		t.Helper()
		got, err := k.list(ctx)
		same(what, want, got, err)
	}
	save := func(what string, r, want R) {
		t.Helper()
		got, err := k.save(ctx, r)
		same(what, want, got, err)
	}
	list("nothing")
	zed, one, two := k.rule("zed", stamp(1, 1, false), false), k.rule("abc", stamp(1, 2, false), false), k.rule("abc", stamp(2, 3, false), true)
	save("first", k.rule("zed", stamp(0, 1, false), false), zed)
	save("another", k.rule("abc", stamp(0, 2, false), false), one)
	save("its next version", k.rule("abc", stamp(0, 3, false), true), two)
	list("by name", two, zed)

	gone := k.rule("abc", stamp(3, 4, true), true)
	save("removed", k.rule("abc", stamp(0, 4, true), false), gone)
	_, err := k.save(ctx, k.rule("abc", stamp(0, 5, true), false))
	if fault.Of(err) != fault.NotFound {
		t.Errorf("removed twice: %v", err)
	}
	list("what is left", zed)
	got, err := k.history(ctx, "abc")
	same("history", []R{gone, two, one}, got, err)
	back := k.rule("abc", stamp(4, 6, false), false)
	save("back", k.rule("abc", stamp(0, 6, false), false), back)
	list("both", back, zed)
	if _, err := k.history(ctx, "never"); fault.Of(err) != fault.NotFound {
		t.Errorf("history of nothing: %v", err)
	}
	if _, err := k.save(ctx, k.rule("never", stamp(0, 7, true), false)); fault.Of(err) != fault.NotFound {
		t.Errorf("removed what never was: %v", err)
	}

	prune := func(what string, before, keep, pruned int, left ...R) {
		t.Helper()
		n, err := k.prune(ctx, when(before), keep)
		same(what, pruned, n, err)
		got, err := k.history(ctx, "abc")
		same(what, left, got, err)
	}
	prune("the newest stay", 100, 3, 1, back, gone, two)
	prune("what is not old stays", 4, 1, 1, back, gone)
	prune("one stays", 100, 0, 1, back)
	again := k.rule("abc", stamp(5, 9, false), true)
	save("numbers go on", k.rule("abc", stamp(0, 9, false), true), again)
	list("as before", again, zed)
}
