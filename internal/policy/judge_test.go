package policy_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/policy/policytest"
)

func compiled(tb testing.TB, when string, change ...func(*policy.Rule)) policy.Compiled {
	tb.Helper()
	r := policy.Rule{Name: "r", Stamp: fleet.Stamp{Version: 3}, Definition: policy.Definition{Effect: policy.Deny, Message: "m", When: when}}
	for _, c := range change {
		c(&r)
	}
	if err := r.Check(); err != nil {
		tb.Fatal(err)
	}
	c, err := policy.Compile(r)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func seqOf(changes ...policy.Change) iter.Seq2[policy.Change, error] {
	return func(yield func(policy.Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// numbers is the first n numbers from one on.
func numbers(from, n uint32) (list []uint32) {
	for i := range n {
		list = append(list, from+i)
	}
	return list
}

func someChanges() []policy.Change {
	return []policy.Change{
		{Key: "user", Kind: "removed", Type: "User", Title: "legacy", Nodes: numbers(0, 14)},
		{Key: "pkg", Kind: "changed", Type: "Package", Title: "openssl", Parameters: []string{"ensure"}, Nodes: numbers(10, 200), Acknowledged: true},
		{Key: "file", Kind: "changed", Type: "File", Title: "/etc/ssh/sshd_config", Parameters: []string{"content", "mode"}, Nodes: numbers(0, 3)},
		{Key: "elsewhere", Kind: "removed", Type: "User", Title: "other"}, // on none of the release's nodes
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	subject := policy.Subject{
		Environment: "production", At: at(t, "2026-11-20T23:30:00Z"), Nodes: 210, Waves: []int{1, 209}, Preview: policy.Totals{
			Nodes: 300, Changed: 210, Failed: 2, Unseen: 1,
		},
	}
	for _, c := range []struct {
		when  string
		found []string // changes; "*": the whole
		nodes int
	}{
		{`change.kind == "removed" and change.type == "User" and change.nodes > 10`, []string{"user"}, 14},
		{`change.kind == "removed" && change.nodes > 14`, nil, 0},
		{`change.kind in ["removed", "changed"]`, []string{"user", "pkg", "file"}, 210},
		{`true`, []string{"user", "pkg", "file"}, 210},
		{`change.title startsWith "/etc/ssh/" and "mode" in change.parameters`, []string{"file"}, 3},
		{`change.title matches "^/etc/(ssh|ssl)/" and not change.acknowledged`, []string{"file"}, 3},
		{`any(change.parameters, # == "ensure")`, []string{"pkg"}, 200},
		{`len(change.parameters) == 0 or lower(change.type) == "package"`, []string{"user", "pkg"}, 210},
		{`environment == "production" and change.nodes * 100 / release.nodes > 90`, []string{"pkg"}, 200},
		{`preview.changed > 200`, []string{"*"}, 210},
		{`preview.failed > 0 or preview.unseen > 5`, []string{"*"}, 210},
		{`release.waves[0] > 1`, nil, 0},
		{`time.weekday in ["sat", "sun"]`, nil, 0},
		{`time.weekday == "fri" and time.hour == 23 and time.minute == 30 and time.date == "2026-11-20"`, []string{"*"}, 210},
	} {
		v, err := policy.Judge(t.Context(), []policy.Compiled{compiled(t, c.when)}, nil, subject, seqOf(someChanges()...))
		if err != nil {
			t.Fatal(err)
		}
		var want []policy.Finding
		if c.found != nil {
			f := policy.Finding{Rule: "r", Version: 3, Effect: policy.Deny, Message: "m", Nodes: c.nodes}
			if c.found[0] != "*" {
				f.Changes, f.Found = c.found, len(c.found)
			}
			want = []policy.Finding{f}
		}
		if diff := cmp.Diff(want, v.Findings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.when, diff)
		}
	}
}

func TestZonesOfRules(t *testing.T) {
	t.Parallel()
	berlin := compiled(t, `time.weekday == "sat" and time.hour == 0`, func(r *policy.Rule) { r.Zone = "Europe/Berlin" })
	v, err := policy.Judge(t.Context(), []policy.Compiled{berlin}, nil, policy.Subject{At: at(t, "2026-11-20T23:30:00Z"), Nodes: 1}, seqOf())
	if err != nil || len(v.Findings) != 1 {
		t.Errorf("%v %+v", err, v)
	}
}

func TestRulesOfOtherEnvironments(t *testing.T) {
	t.Parallel()
	other := compiled(t, "true", func(r *policy.Rule) { r.Environments = []fleet.Environment{"testing"} })
	v, err := policy.Judge(t.Context(), []policy.Compiled{other}, nil, policy.Subject{Environment: "production"}, seqOf(someChanges()...))
	if err != nil || len(v.Findings) != 0 {
		t.Errorf("%v %+v", err, v)
	}
}

// TestWhatCannotBeJudgedCounts: an element that is not there, at run time, and a stored rule that does not compile.
func TestWhatCannotBeJudgedCounts(t *testing.T) {
	t.Parallel()
	s := &policy.Service{Store: policytest.NewStore()}
	rules := []policy.Rule{
		{Name: "index", Definition: policy.Definition{Effect: policy.Deny, When: `change.parameters[5] == "x"`}},
		{Name: "old", Definition: policy.Definition{Effect: policy.Warn, When: `change.gone == 1`, Zone: "Nowhere/Land"}},
	}
	v, err := s.JudgeBy(t.Context(), rules, policy.Subject{Nodes: 7}, seqOf(someChanges()...))
	if err != nil || len(v.Findings) != 2 || v.Findings[0].Found != 3 || v.Findings[0].Broken == "" || v.Findings[1].Nodes != 7 || v.Findings[1].Broken == "" {
		t.Errorf("%v %+v", err, v)
	}
}

func TestExpressionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"":                              "which changes?",
		"change.nodes":                  "bool",
		"change.nope == 1":              "nope",
		`change.kind == 1`:              "mismatched types",
		"change.nodes >":                "unexpected token",
		"1..10000000 == [1]":            "operator .. is not allowed",
		"len(map(1..3, #)) > 1":         "not allowed",
		`let a = "x"; a == "x"`:         "let and ;",
		`now() != nil`:                  "function",
		`env("HOME") == ""`:             "function",
		`repeat("a", 1000000) == ""`:    "repeat",
		`$env["change"] == nil`:         "$env",
		`{"a": 1}.a == 1`:               "maps",
		`"abc"[0:2] == "a"`:             "slices",
		`2 ** 3 > 1`:                    "operator **",
		`any([1], any([2], # == 2))`:    "inside of each other",
		`change.title | trim() == "a"`:  "",
		`change.title matches "("`:      "field when",
		`change.title.Foo() == 1`:       "functions",
		strings.Repeat("(", 1900) + "1": "field when",
		`len([` + strings.Repeat("1,", 900) + `1]) > 1`: "field when",
		strings.Repeat("x", 2001):                       "at most 2000",
		"\xff":                                          "UTF-8",
	} {
		_, err := policy.Compile(policy.Rule{Definition: policy.Definition{When: when}})
		if want == "" {
			if err != nil {
				t.Errorf("%.60q is refused: %v", when, err)
			}
			continue
		}
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.60q: %v, want %q", when, err, want)
		}
	}
}

// TestJudgingEnds: a budget that is used up ends it with an error, never with a verdict.
func TestJudgingEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := policy.Judge(ctx, []policy.Compiled{compiled(t, "true")}, nil, policy.Subject{}, seqOf(someChanges()...))
	if fault.Of(err) != fault.Unavailable || len(v.Findings) > 0 {
		t.Errorf("%v %+v", err, v)
	}
	broken := func(yield func(policy.Change, error) bool) { yield(policy.Change{}, fault.New(fault.NotFound, "gone")) }
	if _, err := policy.Judge(t.Context(), nil, nil, policy.Subject{}, broken); fault.Of(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
}

// TestLossesAreFound: what catalogs lose is named, whether a rule looks at it or not, when a node of the subject loses it.
func TestLossesAreFound(t *testing.T) {
	t.Parallel()
	none := policy.Change{Kind: "lost-most"}
	lost := policy.Change{Key: "k", Kind: "lost-all", Title: "no resource is left", Nodes: []uint32{1, 2}}
	v, err := policy.Judge(t.Context(), nil, nil, policy.Subject{}, seqOf(append(someChanges(), lost, none)...))
	want := policy.Verdict{
		Losses: []policy.Finding{{Rule: "lost-all", Effect: policy.Warn, Message: "no resource is left", Nodes: 2, Changes: []string{"k"}, Found: 1}},
	}
	if err != nil || !cmp.Equal(want, v) {
		t.Errorf("what is lost (-want +got), %v:\n%s", err, cmp.Diff(want, v))
	}
}

// TestNodesAreCountedOnce compares with sets.
func TestNodesAreCountedOnce(t *testing.T) {
	t.Parallel()
	rule := compiled(t, `change.kind == "removed"`)
	rapid.Check(t, func(t *rapid.T) {
		var changes []policy.Change
		nodes, found := map[uint32]bool{}, 0
		for i := range rapid.IntRange(0, 8).Draw(t, "changes") {
			c := policy.Change{Key: fmt.Sprint(i), Kind: rapid.SampledFrom([]string{"removed", "added"}).Draw(t, "kind")}
			c.Nodes = rapid.SliceOfDistinct(rapid.Uint32Range(0, 100_000), func(n uint32) uint32 { return n }).Draw(t, "nodes")
			slices.Sort(c.Nodes)
			changes = append(changes, c)
			if c.Kind == "removed" && len(c.Nodes) > 0 {
				found++
				for _, n := range c.Nodes {
					nodes[n] = true
				}
			}
		}
		v, err := policy.Judge(context.Background(), []policy.Compiled{rule}, nil, policy.Subject{}, seqOf(changes...))
		switch {
		case err != nil:
			t.Fatal(err)
		case found == 0 && len(v.Findings) > 0, found > 0 && (v.Findings[0].Found != found || v.Findings[0].Nodes != len(nodes)):
			t.Errorf("%+v, want %d changes on %d nodes", v.Findings, found, len(nodes))
		}
	})
}

// FuzzCompile lets no expression panic, run for long, or answer with anything but a verdict.
func FuzzCompile(f *testing.F) {
	for _, when := range []string{
		`change.kind == "removed" and change.nodes > 10`, `any(change.parameters, # matches "^a(b|c)*")`, `time.hour > 18 ? true : environment in ["a"]`,
		`$env`, `let a = 1; a`, `1..9`, `[1,2][0] == 1`, `change?.title ?? "x" == "y"`, `count(change.parameters) % 0 == 1`, `"a" + change.title == ""`,
		`-change.nodes < 0`, `change.title matches change.message`, `not (not true)`, `release.waves[99] > 1`, "#", ".a", "change.title[0] == 1",
	} {
		f.Add(when)
	}
	f.Fuzz(func(t *testing.T, when string) {
		c, err := policy.Compile(policy.Rule{Name: "r", Definition: policy.Definition{When: when, Effect: policy.Deny}})
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%q: %v", when, err)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		v, err := policy.Judge(ctx, []policy.Compiled{c}, nil, policy.Subject{Nodes: 3, Waves: []int{1, 2}}, seqOf(someChanges()...))
		if err != nil || len(v.Findings) > 1 {
			t.Errorf("%q: %v %+v", when, err, v)
		}
	})
}
