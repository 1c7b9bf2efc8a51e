package sim

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	three := 3
	for name, c := range map[string]struct {
		state    string
		exitCode *int
		did      Count
		want     string
	}{
		"succeeded":               {"succeeded", nil, Count{Begun: 1}, ""},
		"failed with its code":    {"failed", &three, Count{Begun: 1, ExitCode: 3}, ""},
		"lost with its program":   {"lost", nil, Count{Begun: 1, Vanished: true}, ""},
		"lost, yet there":         {"lost", nil, Count{Begun: 1}, "its node knows better"},
		"lost before it began":    {"lost", nil, Count{}, "its node knows better"},
		"timed out before":        {"timed_out", nil, Count{}, ""},
		"skipped":                 {"skipped", nil, Count{}, ""},
		"not over":                {"sent", nil, Count{}, "not over: sent"},
		"unknown word":            {"done", nil, Count{}, "not over: done"},
		"executed twice":          {"succeeded", nil, Count{Begun: 2}, "executed 2 times"},
		"skipped, yet executed":   {"skipped", nil, Count{Begun: 1}, "executed 1 times"},
		"never executed":          {"succeeded", nil, Count{}, "never executed"},
		"gone before its end":     {"succeeded", nil, Count{Begun: 1, Vanished: true}, "vanished"},
		"failed on the node":      {"succeeded", nil, Count{Begun: 1, ExitCode: 1}, "ended with 1 on the node"},
		"succeeded on the node":   {"failed", nil, Count{Begun: 1}, "ended with 0 on the node"},
		"another code than shown": {"failed", &three, Count{Begun: 1, ExitCode: 4}, "3 for the server, with 4"},
	} {
		got := Judge(Verdict{Execution{"n", "t"}, c.state, c.exitCode}, c.did)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRecorderCountsExecutions(t *testing.T) {
	t.Parallel()
	r, once, twice := NewRecorder(), Execution{"a", "1"}, Execution{"b", "1"}
	for _, e := range []Execution{once, twice, twice} {
		r.begin(e, 4)
	}
	executed, repeated := r.Totals()
	if executed != 2 || len(repeated) != 1 || repeated[0] != twice {
		t.Errorf("%d executed, %v twice", executed, repeated)
	}
	r.vanished(once)
	r.vanished(Execution{"a", "2"})
	for e, want := range map[Execution]Count{
		once: {Begun: 1, ExitCode: 4, Vanished: true}, twice: {Begun: 2, ExitCode: 4},
		{"a", "2"}: {}, {"c", "1"}: {},
	} {
		if got := r.Count(e); got != want {
			t.Errorf("%v: %+v, want %+v", e, got, want)
		}
	}
}
