package release_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/policy/policytest"
	"github.com/tutti-project/tutti/internal/release"
)

// What is forbidden or frozen in an environment is so for a roll back into it, also if other nodes go back to another one.
func TestRollBackIsJudgedWhereNodesGo(t *testing.T) {
	t.Parallel()
	policies := &policy.Service{Store: policytest.NewStore()}
	gate, ann, at := release.Policies{Policies: policies}, fleet.Actor{Name: "ann"}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	only := []fleet.Environment{"production"}
	for name, hours := range map[string]int{"short": 1, "long": 5} {
		if _, err := policies.SetFreeze(t.Context(), ann, name, policy.Freezing{
			Environments: map[string][]fleet.Environment{"short": {"dev", "production"}, "long": only}[name], From: at, To: at.Add(time.Duration(hours) * time.Hour),
			Zone: "UTC", Why: name,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := policies.SetPolicy(t.Context(), ann, "many", policy.Definition{Effect: policy.Warn, Message: "many", When: "release.nodes > 1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.SetPolicy(t.Context(), ann, "no", policy.Definition{
		Environments: only, Effect: policy.Deny, Message: "no", When: "release.nodes > 0",
	}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		into  []fleet.Environment
		rules []string
		until int
	}{
		"dev":        {[]fleet.Environment{"dev"}, []string{"many"}, 1},
		"production": {only, []string{"many", "no"}, 5},
		"both":       {[]fleet.Environment{"dev", "production"}, []string{"many", "no"}, 5},
	} {
		verdict, err := gate.Judge(t.Context(), release.Question{Kind: release.Rollback, Environments: c.into, Nodes: []fleet.Certname{"a", "b"}, At: at})
		if err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, f := range verdict.Findings {
			rules = append(rules, f.Rule)
		}
		if diff := cmp.Diff(c.rules, rules); diff != "" {
			t.Errorf("%s: rules (-want +got):\n%s", name, diff)
		}
		if verdict.Frozen == nil || !verdict.Frozen.Until.Equal(at.Add(time.Duration(c.until)*time.Hour)) {
			t.Errorf("%s: it is frozen %+v, want %d hours", name, verdict.Frozen, c.until)
		}
	}
}
