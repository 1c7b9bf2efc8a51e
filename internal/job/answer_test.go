package job

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzAnswer: whatever a node says is nothing, or an event that leads to a final state with a
// reason that can be shown.
func FuzzAnswer(f *testing.F) {
	const run = "0b8e8c5e-7d1f-4e0b-9c0e-000000000001"
	for _, results := range []string{
		`{"exitcode":0,"stdout":"x"}`, `{"transaction_id":"` + run + `","status":"success","exitcode":0,"stdout":"{\"_error\":{}}"}`,
		`{"status":"changed","metrics":{"total":1},"exitcode":0}`, `{"transaction_id":"` + run + `","status":"unknown"}`, `null`, `[]`, `{"exitcode":"no"}`,
		`{"transaction_id":"` + run + `","status":"failure","exitcode":1,"stdout":"{\"_error\":{\"kind\":\"puppetlabs.pxp-agent/execution-error\",\"msg\":\"m\"}}"}`,
	} {
		f.Add(uint8(1), run, results, "unknown module: x", true)
		f.Add(uint8(2), run+"_q1", results, "", false)
		f.Add(uint8(2), run+"_c1", results, "", false)
	}
	f.Fuzz(func(t *testing.T, kind uint8, transaction, results, description string, puppet bool) {
		of := Command
		if puppet {
			of = Puppet
		}
		a := Answer{Node: "n", Kind: AnswerKind(kind % 4), Transaction: transaction, Results: []byte(results), Description: description}
		e, known := a.event(of, time.Unix(1, 0), time.Unix(2, 0))
		if !known {
			return
		}
		if e.Run == "" && transaction != "" && !strings.HasPrefix(transaction, "_") || !utf8.ValidString(e.Reason) || strings.ContainsAny(e.Reason, "\x00\n\x1b") ||
			len(e.Reason) > 3*maxReasonBytes {
			t.Errorf("event of %q: %+v", transaction, e)
		}
		if (e.What == Ended || e.What == NotRun) && !e.State.Final() || e.What == Ended && e.Outcome == nil {
			t.Errorf("an end without an end: %+v", e)
		}
		r, verdict := Run{ID: e.Run, Node: "n", State: Running}.Step(e)
		if verdict == Took && r.State.Final() && e.What == Ended && r.ExitCode == nil {
			t.Errorf("ended without an exit code: %+v", r)
		}
	})
}
