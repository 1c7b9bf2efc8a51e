package job

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// A task's _error is a failure whatever its exit code is, and its _sensitive is not kept. Commands say nothing by such keys.
func TestKeysOfTaskOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind         Kind
		exit         int
		stdout       string
		state        State
		reason, text string
	}{
		{Task, 0, `{"a": 1}`, Succeeded, "exit code 0", `{"a": 1}`},
		{
			Task, 0, `{"_error": {"msg": "full", "kind": "x/y"}}`, RunFailed, "exit code 0, and its output has an _error: full",
			`{"_error": {"msg": "full", "kind": "x/y"}}`,
		},
		{Task, 0, `{"_error":"text"}`, RunFailed, "exit code 0, and its output has an _error: text", `{"_error":"text"}`},
		{Task, 0, `{"_error":{}}`, RunFailed, "exit code 0, and its output has an _error: {}", `{"_error":{}}`},
		{Task, 0, `{"_error":""}`, RunFailed, "exit code 0, and its output has an _error", `{"_error":""}`},
		{Task, 0, `{"_error":null}`, Succeeded, "exit code 0", `{"_error":null}`},
		{Task, 0, `{"a":{"_error":1}}`, Succeeded, "exit code 0", `{"a":{"_error":1}}`},
		{Task, 0, `_error {`, Succeeded, "exit code 0", `_error {`},
		{Task, 3, `{"_error":{"msg":"m"}}`, RunFailed, "exit code 3", `{"_error":{"msg":"m"}}`},
		{Task, 0, `{ "_sensitive" : {"p": "s3"} , "b":[1.50] }`, Succeeded, "exit code 0", `{ "_sensitive" : "(hidden)" , "b":[1.50] }`},
		{
			Task, 1, `{"a":1,"_sensitive":"s3","\u005fsensitive":["s3"],"_error":{"msg":"m"}}`, RunFailed, "exit code 1",
			`{"a":1,"_sensitive":"(hidden)","\u005fsensitive":"(hidden)","_error":{"msg":"m"}}`,
		},
		{Task, 0, `{"\u005fsensitive":["s3"]}`, Succeeded, "exit code 0", `{"\u005fsensitive":"(hidden)"}`},
		{Command, 0, `{"_error":1,"_sensitive":2}`, Succeeded, "exit code 0", `{"_error":1,"_sensitive":2}`},
	} {
		for _, asked := range []bool{false, true} {
			a := Answer{Kind: Response, Transaction: "t", Results: pxp.Data(pxp.Outcome{ExitCode: c.exit, Stdout: c.stdout})}
			if asked {
				a = Answer{Kind: Reply, Transaction: "t_q1"}
				a.Results = pxp.Data(pxp.StatusResults{Transaction: "t", Status: pxp.Success, ExitCode: &c.exit, Stdout: c.stdout})
			}
			e, known := a.event(c.kind, time.Unix(1, 0), time.Unix(2, 0))
			if !known || e.State != c.state || e.Reason != c.reason {
				t.Errorf("%s %s: %s, %q", c.kind, c.stdout, e.State, e.Reason)
			}
			_, want := EncodeLines(c.text, "", e.At)
			if diff := cmp.Diff(want, e.Outcome.Chunks); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", c.kind, c.stdout, diff)
			}
		}
	}
}

// pxp-agent's exit codes for what it could not run have words; the same codes of programs, and of other agents, have none.
func TestWordsOfExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agent  string
		exit   int
		stdout string
		want   string
	}{
		{"WebSocket++/0.8.2", 7, "", "exit code 7: from pxp-agent that means that " + exitWords[7] + ", unless the program itself ended so"},
		{"WebSocket++/0.8.2", 8, "", "exit code 8: from pxp-agent that means that " + exitWords[8] + ", unless the program itself ended so"},
		{"WebSocket++/0.8.2", 9, "half", "exit code 9: from pxp-agent that means that " + exitWords[9] + ", unless the program itself ended so"},
		{"WebSocket++/0.8.2", 8, "text", "exit code 8"},
		{"WebSocket++/0.8.2", 10, "", "exit code 10"},
		{"tutti-agent/1", 8, "", "exit code 8"},
		{"", 8, "", "exit code 8"},
	} {
		results := pxp.Data(pxp.Outcome{ExitCode: c.exit, Stdout: c.stdout})
		e, _ := Answer{Kind: Response, Transaction: "t", Results: results}.event(Command, time.Unix(1, 0), time.Unix(2, 0))
		if got := e.explained(c.agent).Reason; got != c.want {
			t.Errorf("%s, %d: %q, want %q", c.agent, c.exit, got, c.want)
		}
	}
}
