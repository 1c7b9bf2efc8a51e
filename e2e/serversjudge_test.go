package e2e_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/sim"
)

// heard is what clients were told with a 2xx, and what nodes did. Nothing of it was asked of a server or of the database afterwards.
type heard struct {
	facts      map[string]factsTold // by node
	reports    map[string]bool      // sent ones, by transaction: whether that was acknowledged
	runs       map[string]said      // of Puppet on simulated nodes, by node and report: what it said
	applied    map[string][]string  // catalogs by simulated node, in order; those of rehearsals are left out
	orders     map[string]orderTold // by label
	executions map[sim.Execution]sim.Count
	marks      map[string]map[string]int // by real node and label: lines that its orders wrote there
	releases   map[string]releaseTold
	wrong      []string          // catalogs that were given to nodes and are not theirs
	edition    string            // of the code that was deployed last
	editions   map[string]string // by real node: what its Puppet wrote last
}

// factsTold is what was sent of a node's facts: a value by the number of the submission, and the newest number that was acknowledged.
type factsTold struct {
	sent         map[int64]int64
	acknowledged int64
}

// orderTold is an order and the number of its job, empty if that was not acknowledged.
type orderTold struct {
	job     string
	targets []string
}

// releaseTold is the waves of a release whose promotion was acknowledged, and those of them that were seen to wait for it afterwards.
type releaseTold struct {
	promoted, waitedAgain []int
}

// kept is what there is in the end: what the database says, and how the servers show it.
type kept struct {
	facts       map[string][2]int64 // number and value by node
	queued      int                 // sets of facts that wait to be applied
	reports     map[string]int      // rows by transaction
	runs        map[string]said     // as the stream of events has them
	catalogs    map[string]string   // that nodes should have, by node
	jobs        map[string]string   // states
	labels      map[string]int      // jobs by label
	jobRuns     []jobRunKept
	releases    map[string]releaseKept
	inventories map[string][]string // by server: a line for each node, job and release
}

type jobRunKept struct {
	job, transaction, node, state, reason string
	exitCode                              *int
	lines                                 int
}

type releaseKept struct {
	state   string
	wave    int
	entries int // decisions to promote that are noted
	targets []releaseTargetKept
}

type releaseTargetKept struct{ node, state, catalog string }

// invariant is what must hold, whatever is done to servers and what they need.
type invariant string

const (
	factsAreKept       invariant = "acknowledged facts are kept, whole"
	reportsAreKeptOnce invariant = "acknowledged reports are kept, once"
	eventsAreKeptOnce  invariant = "events are kept once and in order"
	catalogsArrive     invariant = "nodes have the catalogs that they should"
	ordersAreKept      invariant = "acknowledged orders are kept, once"
	ordersRunOnce      invariant = "no order is executed twice, and none that nobody gave"
	answersAreKept     invariant = "answers of nodes are kept"
	allEnds            invariant = "every job and release ends"
	stepsAreKept       invariant = "acknowledged steps of releases are kept"
	releasesApplyOnce  invariant = "what was released is applied once"
	serversAgree       invariant = "all servers show the same"
)

var invariants = []invariant{
	factsAreKept, reportsAreKeptOnce, eventsAreKeptOnce, catalogsArrive, ordersAreKept, ordersRunOnce, answersAreKept, allEnds, stepsAreKept,
	releasesApplyOnce, serversAgree,
}

// breach is an invariant that does not hold.
type breach struct {
	invariant invariant
	what      string
}

// verdicts gathers breaches.
type verdicts []breach

func (v *verdicts) add(i invariant, format string, args ...any) {
	*v = append(*v, breach{i, fmt.Sprintf(format, args...)})
}

// judgeHavoc compares what clients were told and nodes did with what there is.
func judgeHavoc(t heard, k kept) []breach {
	v := &verdicts{}
	v.facts(t, k)
	v.reports(t, k)
	v.catalogs(t, k)
	v.orders(t, k)
	v.executions(t, k)
	v.releases(t, k)
	v.servers(k)
	return *v
}

func (v *verdicts) facts(t heard, k kept) {
	if k.queued > 0 {
		v.add(factsAreKept, "%d sets of facts are not applied", k.queued)
	}
	for _, node := range slices.Sorted(maps.Keys(t.facts)) {
		sent, stored := t.facts[node], k.facts[node]
		value, was := sent.sent[stored[0]]
		switch {
		case stored[0] < sent.acknowledged:
			v.add(factsAreKept, "of %s those of number %d are stored, %d is acknowledged", node, stored[0], sent.acknowledged)
		case stored[0] != 0 && (!was || value != stored[1]):
			v.add(factsAreKept, "of %s is stored number %d with %d: sent was %d", node, stored[0], stored[1], value)
		}
	}
}

func (v *verdicts) reports(t heard, k kept) {
	for _, transaction := range slices.Sorted(maps.Keys(t.reports)) {
		if t.reports[transaction] && k.reports[transaction] == 0 {
			v.add(reportsAreKeptOnce, "%s is acknowledged, and not there", transaction)
		}
	}
	for _, transaction := range slices.Sorted(maps.Keys(k.reports)) {
		if n := k.reports[transaction]; n > 1 {
			v.add(reportsAreKeptOnce, "%s is there %d times", transaction, n)
		}
	}
	for _, run := range slices.Sorted(maps.Keys(t.runs)) {
		want, got := t.runs[run], k.runs[run]
		if !slices.Equal(want, got) {
			v.add(eventsAreKeptOnce, "the run %s said %d things, and there are %d:\n%s\n--\n%s", run, len(want), len(got), strings.Join(want, "\n"),
				strings.Join(got, "\n"))
		}
	}
	told := map[string]bool{} // by transaction: there are events of it
	for _, run := range slices.Sorted(maps.Keys(k.runs)) {
		_, transaction, _ := strings.Cut(run, " ")
		told[transaction] = true
		_, streamed := t.runs[run]
		if _, reported := t.reports[transaction]; !streamed && (!reported || len(k.runs[run]) != eventsOfAReport) {
			v.add(eventsAreKeptOnce, "there are %d events of a run %s that streamed none (its report was sent: %t)", len(k.runs[run]), run, reported)
		}
	}
	for _, transaction := range slices.Sorted(maps.Keys(t.reports)) {
		if t.reports[transaction] && !told[transaction] {
			v.add(eventsAreKeptOnce, "there are no events of %s, whose report is acknowledged", transaction)
		}
	}
}

// eventsOfAReport is how many the report of a run gives that streamed none: see reportJSON.
const eventsOfAReport = 3

func (v *verdicts) catalogs(t heard, k kept) {
	for _, wrong := range t.wrong {
		v.add(catalogsArrive, "%s", wrong)
	}
	for _, node := range slices.Sorted(maps.Keys(t.applied)) {
		if all := t.applied[node]; len(all) > 0 && all[len(all)-1] != k.catalogs[node] {
			v.add(catalogsArrive, "%s applied %.12s last, and should have %.12s", node, all[len(all)-1], k.catalogs[node])
		}
	}
	for _, node := range slices.Sorted(maps.Keys(t.editions)) {
		if t.editions[node] != t.edition {
			v.add(catalogsArrive, "Puppet wrote edition %q on %s, deployed is %q", t.editions[node], node, t.edition)
		}
	}
}

func (v *verdicts) orders(t heard, k kept) {
	rows := map[string]map[string]int{}
	for _, r := range k.jobRuns {
		if rows[r.job] == nil {
			rows[r.job] = map[string]int{}
		}
		rows[r.job][r.node]++
	}
	for _, label := range slices.Sorted(maps.Keys(t.orders)) {
		order := t.orders[label]
		if n := k.labels[label]; n > 1 || n == 0 && order.job != "" {
			v.add(ordersAreKept, "%s is there as %d jobs", label, n)
		}
		if order.job == "" {
			continue
		}
		if k.jobs[order.job] == "" {
			v.add(ordersAreKept, "%s is acknowledged as job %s, which is not there", label, order.job)
		}
		for _, node := range order.targets {
			if rows[order.job][node] != 1 {
				v.add(ordersAreKept, "%s has %d runs for %s", label, rows[order.job][node], node)
			}
		}
	}
	for _, job := range slices.Sorted(maps.Keys(k.jobs)) {
		if state := k.jobs[job]; state != "finished" && state != "failed" && state != "stopped" {
			v.add(allEnds, "job %s is %s", job, state)
		}
	}
}

// executions compares what nodes executed with the rows, and with what real ones wrote.
func (v *verdicts) executions(t heard, k kept) {
	known, labels := map[sim.Execution]bool{}, map[string]string{}
	for label, order := range t.orders {
		labels[order.job] = label
	}
	for _, r := range k.jobRuns {
		e := sim.Execution{Node: r.node, Transaction: r.transaction}
		known[e] = true
		v.answer(r, t.executions[e])
		marks, isReal := t.marks[r.node]
		if label, given := labels[r.job]; isReal && given && (r.state == "succeeded") != (marks[label] > 0) {
			v.add(answersAreKept, "%s is %s on %s (%s), and wrote %d lines there", label, r.state, r.node, r.reason, marks[label])
		}
	}
	for e, did := range t.executions {
		switch {
		case did.Begun > 1:
			v.add(ordersRunOnce, "%s was executed %d times on %s", e.Transaction, did.Begun, e.Node)
		case !known[e]:
			v.add(ordersRunOnce, "%s was executed on %s, and no job has it", e.Transaction, e.Node)
		}
	}
	for node, marks := range t.marks {
		for label, times := range marks {
			if _, given := t.orders[label]; times > 1 || !given {
				v.add(ordersRunOnce, "%s wrote %d lines on %s (given: %t)", label, times, node, given)
			}
		}
	}
}

// answer compares a row with what its node did. Nothing is lost, errored or timed out that came to its end on the node.
func (v *verdicts) answer(r jobRunKept, did sim.Count) {
	said := sim.Judge(sim.Verdict{Execution: sim.Execution{Node: r.node, Transaction: r.transaction}, State: r.state, ExitCode: r.exitCode}, did)
	ended := did.Begun > 0 && !did.Vanished
	switch {
	case !sim.Final(r.state):
		v.add(allEnds, "%s", said)
	case did.Begun > 1: // that is told of the execution
	case said != "":
		v.add(answersAreKept, "%s (%s)", said, r.reason)
	case ended && r.state != "succeeded" && r.state != "failed":
		v.add(answersAreKept, "%s is %s on %s (%s), and came to its end there", r.transaction, r.state, r.node, r.reason)
	case r.state == "succeeded" && r.lines == 0:
		v.add(answersAreKept, "what %s printed on %s is not there", r.transaction, r.node)
	}
}

func (v *verdicts) releases(t heard, k kept) {
	for _, id := range slices.Sorted(maps.Keys(t.releases)) {
		heard, there := t.releases[id], k.releases[id]
		if there.state == "" {
			v.add(stepsAreKept, "release %s is acknowledged, and not there", id)
			continue
		}
		if len(heard.waitedAgain) > 0 || there.entries < len(heard.promoted) {
			v.add(stepsAreKept, "of release %s were promoted after waves %v; it waited again after %v, and notes %d promotions", id, heard.promoted,
				heard.waitedAgain, there.entries)
		}
		for _, wave := range heard.promoted {
			if there.wave <= wave {
				v.add(stepsAreKept, "release %s was promoted after wave %d, and ended at %d", id, wave, there.wave)
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(k.releases), cmp.Compare) {
		r := k.releases[id]
		if r.state != "done" && r.state != "done_with_failures" && r.state != "aborted" {
			v.add(allEnds, "release %s is %s", id, r.state)
		}
		for _, target := range r.targets {
			times := 0
			for _, catalog := range t.applied[target.node] {
				if catalog == target.catalog {
					times++
				}
			}
			if ran := target.state == "changed" || target.state == "ok"; times > 1 || ran && times == 0 {
				v.add(releasesApplyOnce, "%s is %s in release %s, and applied its catalog %d times", target.node, target.state, id, times)
			}
		}
	}
}

func (v *verdicts) servers(k kept) {
	names := slices.Sorted(maps.Keys(k.inventories))
	for _, name := range names[min(1, len(names)):] {
		first := k.inventories[names[0]]
		for i, line := range k.inventories[name] {
			if i >= len(first) || first[i] != line {
				v.add(serversAgree, "%s shows %q, %s does not", name, line, names[0])
				break
			}
		}
		if len(k.inventories[name]) < len(first) {
			v.add(serversAgree, "%s shows %d things, %s shows %d", name, len(k.inventories[name]), names[0], len(first))
		}
	}
	if len(names) == 0 {
		v.add(serversAgree, "no server shows anything")
	}
}
