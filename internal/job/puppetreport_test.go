package job

import (
	"strings"
	"testing"
	"time"
)

// results is what an agent says of a Puppet run.
func results(status string, exit int, more string) []byte {
	kind := ""
	if exit != 0 {
		kind = `,"error_type":"agent_exit_non_zero","error":"Puppet ended with exit code 4"`
	}
	return []byte(`{"status":"` + status + `","exitcode":` + string(rune('0'+exit)) +
		`,"transaction_uuid":"u","environment":"production","version":1` + kind + more + `}`)
}

func TestWhatAReportSaysOfARun(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab", 32)
	for name, test := range map[string]struct {
		results []byte
		asked   PuppetSpec
		report  PuppetReport
		state   State
		reason  string
		pending int
		cached  bool
	}{
		"an old catalog, for want of a new one": {
			results: results("unchanged", 0, ""), report: PuppetReport{ID: id, Cached: true, Broken: "web.pp:12: Syntax error"},
			state: RunFailed, reason: "its catalog does not compile (web.pp:12: Syntax error); it applied the one it had; tutti report show abababababab", cached: true,
		},
		"the catalog that its agent keeps": {
			results: results("changed", 0, `,"catalog":"d"`), report: PuppetReport{ID: id, Broken: "web.pp:12: Syntax error"},
			state: RunFailed, reason: "its catalog does not compile (web.pp:12: Syntax error); it applied the one it had; tutti report show abababababab", cached: true,
		},
		"the catalog that its agent keeps, without a report": {
			results: results("changed", 0, `,"catalog":"d"`), report: PuppetReport{Broken: "web.pp:12: Syntax error"},
			state: RunFailed, reason: "its catalog does not compile (web.pp:12: Syntax error); it applied the one it had", cached: true,
		},
		"the catalog that its agent keeps, as ordered": {
			results: results("changed", 0, `,"catalog":"d"`), asked: PuppetSpec{UseCachedCatalog: true}, report: PuppetReport{ID: id, Broken: "web.pp:12: Syntax error"},
			state: Succeeded, reason: "Puppet ran: changed",
		},
		"a catalog of its own, though a newer one breaks": {
			results: results("changed", 0, ""), report: PuppetReport{ID: id, Broken: "web.pp:12: Syntax error"}, state: Succeeded, reason: "Puppet ran: changed",
		},
		"an old catalog, and nobody knows why": {
			results: results("unchanged", 0, ""), report: PuppetReport{ID: id, Cached: true, NoCatalog: "Connection refused"},
			state: RunFailed, reason: "it was given no catalog: Connection refused; it applied the one it had; tutti report show abababababab", cached: true,
		},
		"an environment without code": {
			results: results("failed", 1, ""), report: PuppetReport{NoCatalog: "Error 404 on SERVER: Not Found: Could not find environment 'testing'"},
			state: RunFailed, reason: "it was given no catalog: the environment testing has no code yet: deploy some with `tutti code deploy testing DIR`",
		},
		"no catalog at all": {
			results: results("failed", 1, ""), report: PuppetReport{ID: id, Broken: "web.pp:12: Syntax error", NoCatalog: "Error 500"},
			state: RunFailed, reason: "its catalog does not compile (web.pp:12: Syntax error); tutti report show abababababab",
		},
		"resources that failed": {
			results: results("failed", 4, ""), report: PuppetReport{ID: id, Failed: 3, First: "Exec[x]", Message: "'/bin/false' returned 1\ninstead of one of [0]"},
			state: RunFailed, reason: "Exec[x]: '/bin/false' returned 1 instead of one of [0]; 3 resources failed; tutti report show abababababab",
		},
		"one resource that failed": {
			results: results("failed", 0, ""), report: PuppetReport{ID: id, Failed: 1, First: "Exec[x]"},
			state: RunFailed, reason: "Exec[x]; 1 resource failed; tutti report show abababababab",
		},
		"the catalog that it has, because the newest one is held": {
			results: results("unchanged", 0, ""), report: PuppetReport{ID: id, Held: "catalog held: lost all of its 38 resources"},
			state: Succeeded, reason: "Puppet ran: unchanged; catalog held: lost all of its 38 resources",
		},
		"a dry run with the catalog that it has": {
			results: results("unchanged", 0, ""), asked: PuppetSpec{Noop: true}, report: PuppetReport{ID: id, Pending: 3, Held: "catalog held"},
			state: Succeeded, reason: "Puppet ran: 3 would change; catalog held", pending: 3,
		},
		"a dry run": {
			results: results("unchanged", 0, ""), asked: PuppetSpec{Noop: true}, report: PuppetReport{ID: id, Pending: 3},
			state: Succeeded, reason: "Puppet ran: 3 would change", pending: 3,
		},
		"a dry run whose report did not come": {
			results: results("unchanged", 0, `,"metrics":{"out_of_sync":5,"changed":1,"failed":1}`), asked: PuppetSpec{Noop: true},
			state: Succeeded, reason: "Puppet ran: 3 would change", pending: 3,
		},
		"a run that found much to do, without a report": {
			results: results("changed", 0, `,"metrics":{"out_of_sync":5,"changed":5}`), state: Succeeded, reason: "Puppet ran: changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, known := Answer{Node: "web-1", Kind: Response, Transaction: "t", Results: test.results}.event(Puppet, time.Time{}, time.Time{})
			if !known {
				t.Fatal("the answer says nothing")
			}
			e.judge(test.report, &test.asked)
			if e.Outcome.Puppet.Held != test.report.Held {
				t.Errorf("held %q, want %q", e.Outcome.Puppet.Held, test.report.Held)
			}
			if e.State != test.state || e.Reason != test.reason || e.Outcome.Puppet.Pending != test.pending || e.Outcome.Puppet.Cached != test.cached {
				t.Errorf("got %s %q pending %d cached %v\nwant %s %q %d %v", e.State, e.Reason, e.Outcome.Puppet.Pending, e.Outcome.Puppet.Cached,
					test.state, test.reason, test.pending, test.cached)
			}
		})
	}
}
