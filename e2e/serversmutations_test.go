package e2e_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/sim"
)

// mutation is one thing that went wrong. It changes copies of what was seen, at a place that chance names.
type mutation struct {
	name   string
	breaks invariant
	do     func(r *rand.Rand, t *heard, k *kept)
}

// anyOf is a key of a map, the same for the same seed.
func anyOf[V any](r *rand.Rand, m map[string]V, fits func(string, V) bool) string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(key string) bool { return !fits(key, m[key]) })
	if len(keys) == 0 {
		return ""
	}
	return keys[r.IntN(len(keys))]
}

func every[V any](string, V) bool { return true }

// with is a copy of a map with another value at a key.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	m = maps.Clone(m)
	m[key] = value
	return m
}

func without[K comparable, V any](m map[K]V, key K) map[K]V {
	m = maps.Clone(m)
	delete(m, key)
	return m
}

// changed is a copy of rows of which one that fits is changed.
func changed(r *rand.Rand, rows []jobRunKept, fits func(jobRunKept) bool, how func(*jobRunKept)) []jobRunKept {
	var places []int
	for i, row := range rows {
		if fits(row) {
			places = append(places, i)
		}
	}
	rows = slices.Clone(rows)
	if len(places) > 0 {
		how(&rows[places[r.IntN(len(places))]])
	}
	return rows
}

func succeeded(r jobRunKept) bool { return r.state == "succeeded" }

// mutations are of each invariant one or more.
var mutations = []mutation{
	{"acknowledged facts are gone", factsAreKept, func(r *rand.Rand, t *heard, k *kept) {
		node := anyOf(r, t.facts, func(_ string, f factsTold) bool { return f.acknowledged > 0 })
		k.facts = without(k.facts, node)
	}},
	{"older facts came over newer ones", factsAreKept, func(r *rand.Rand, t *heard, k *kept) {
		node := anyOf(r, t.facts, func(_ string, f factsTold) bool { return f.acknowledged > 0 })
		older := t.facts[node].acknowledged - 1
		k.facts = with(k.facts, node, [2]int64{older, t.facts[node].sent[older]})
	}},
	{"facts are a mixture", factsAreKept, func(r *rand.Rand, _ *heard, k *kept) {
		node := anyOf(r, k.facts, func(_ string, f [2]int64) bool { return f[0] > 0 })
		k.facts = with(k.facts, node, [2]int64{k.facts[node][0], -1})
	}},
	{"an acknowledged report is gone", reportsAreKeptOnce, func(r *rand.Rand, t *heard, k *kept) {
		k.reports = without(k.reports, anyOf(r, t.reports, func(_ string, acknowledged bool) bool { return acknowledged }))
	}},
	{"a report is there twice", reportsAreKeptOnce, func(r *rand.Rand, _ *heard, k *kept) {
		k.reports = with(k.reports, anyOf(r, k.reports, every), 2)
	}},
	{"an event is gone", eventsAreKeptOnce, func(r *rand.Rand, _ *heard, k *kept) {
		run := anyOf(r, k.runs, func(_ string, s said) bool { return len(s) > 0 })
		k.runs = with(k.runs, run, k.runs[run][1:])
	}},
	{"a report that streamed nothing has no events", eventsAreKeptOnce, func(r *rand.Rand, t *heard, k *kept) {
		k.runs = without(k.runs, anyOf(r, k.runs, func(run string, _ said) bool { return t.runs[run] == nil }))
	}},
	{"an event is there twice", eventsAreKeptOnce, func(r *rand.Rand, _ *heard, k *kept) {
		run := anyOf(r, k.runs, func(_ string, s said) bool { return len(s) > 0 })
		k.runs = with(k.runs, run, append(slices.Clone(k.runs[run]), k.runs[run][0]))
	}},
	{"a node has another catalog", catalogsArrive, func(r *rand.Rand, t *heard, k *kept) {
		k.catalogs = with(k.catalogs, anyOf(r, t.applied, every), "another one")
	}},
	{"Puppet has not come to the last edition", catalogsArrive, func(r *rand.Rand, t *heard, _ *kept) {
		t.editions = with(t.editions, anyOf(r, t.editions, every), "0")
	}},
	{"an acknowledged job is gone", ordersAreKept, func(r *rand.Rand, t *heard, k *kept) {
		label := anyOf(r, t.orders, func(_ string, o orderTold) bool { return o.job != "" })
		k.jobs, k.labels = without(k.jobs, t.orders[label].job), without(k.labels, label)
	}},
	{"an order is there as two jobs", ordersAreKept, func(r *rand.Rand, _ *heard, k *kept) {
		k.labels = with(k.labels, anyOf(r, k.labels, every), 2)
	}},
	{"an order forgot a node", ordersAreKept, func(r *rand.Rand, t *heard, k *kept) {
		k.jobRuns = changed(r, k.jobRuns, func(row jobRunKept) bool { return acknowledgedJob(t, row.job) }, func(row *jobRunKept) { row.job = "0" })
	}},
	{"a simulated node executed an order twice", ordersRunOnce, func(r *rand.Rand, t *heard, _ *kept) {
		e := anyExecution(r, t)
		did := t.executions[e]
		did.Begun = 2
		t.executions = with(t.executions, e, did)
	}},
	{"an order wrote two lines on a real node", ordersRunOnce, func(r *rand.Rand, t *heard, _ *kept) {
		node := anyOf(r, t.marks, every)
		t.marks = with(t.marks, node, with(t.marks[node], anyOf(r, t.marks[node], every), 2))
	}},
	{"a node executed what no job has", ordersRunOnce, func(r *rand.Rand, t *heard, _ *kept) {
		t.executions = with(t.executions, sim.Execution{Node: anyExecution(r, t).Node, Transaction: "nobody's"}, sim.Count{Begun: 1})
	}},
	{"an answer is lost", answersAreKept, func(r *rand.Rand, _ *heard, k *kept) {
		k.jobRuns = changed(r, k.jobRuns, succeeded, func(row *jobRunKept) { row.state, row.exitCode, row.reason = "timed_out", nil, "no answer came" })
	}},
	{"an order that is said to have succeeded wrote nothing", answersAreKept, func(r *rand.Rand, t *heard, _ *kept) {
		node := anyOf(r, t.marks, every)
		label := anyOf(r, t.marks[node], func(label string, _ int) bool { return t.orders[label].job != "" })
		t.marks = with(t.marks, node, without(t.marks[node], label))
	}},
	{"an answer says what did not happen", answersAreKept, func(r *rand.Rand, t *heard, k *kept) {
		k.jobRuns = changed(r, k.jobRuns, succeeded, func(row *jobRunKept) {
			t.executions = without(t.executions, sim.Execution{Node: row.node, Transaction: row.transaction})
		})
	}},
	{"the output of an answer is lost", answersAreKept, func(r *rand.Rand, _ *heard, k *kept) {
		k.jobRuns = changed(r, k.jobRuns, succeeded, func(row *jobRunKept) { row.lines = 0 })
	}},
	{"a run does not end", allEnds, func(r *rand.Rand, _ *heard, k *kept) {
		k.jobRuns = changed(r, k.jobRuns, succeeded, func(row *jobRunKept) { row.state = "sent" })
	}},
	{"a job does not end", allEnds, func(r *rand.Rand, _ *heard, k *kept) {
		k.jobs = with(k.jobs, anyOf(r, k.jobs, every), "running")
	}},
	{"a release does not end", allEnds, func(r *rand.Rand, _ *heard, k *kept) {
		id := anyOf(r, k.releases, every)
		release := k.releases[id]
		release.state = "running"
		k.releases = with(k.releases, id, release)
	}},
	{"a release is gone", stepsAreKept, func(r *rand.Rand, t *heard, k *kept) {
		k.releases = without(k.releases, anyOf(r, t.releases, every))
	}},
	{"a promotion is gone", stepsAreKept, func(r *rand.Rand, t *heard, k *kept) {
		id := anyOf(r, t.releases, func(_ string, heard releaseTold) bool { return len(heard.promoted) > 0 })
		release := k.releases[id]
		release.entries = 0
		k.releases = with(k.releases, id, release)
	}},
	{"a release waits for what was said", stepsAreKept, func(r *rand.Rand, t *heard, _ *kept) {
		id := anyOf(r, t.releases, every)
		release := t.releases[id]
		release.waitedAgain = []int{1}
		t.releases = with(t.releases, id, release)
	}},
	{"a catalog is applied twice", releasesApplyOnce, func(r *rand.Rand, t *heard, k *kept) {
		target := anyTarget(r, k)
		t.applied = with(t.applied, target.node, append([]string{target.catalog}, t.applied[target.node]...))
	}},
	{"a released catalog was never applied", releasesApplyOnce, func(r *rand.Rand, t *heard, k *kept) {
		target := anyTarget(r, k)
		t.applied = with(t.applied, target.node, slices.DeleteFunc(slices.Clone(t.applied[target.node]), func(c string) bool { return c == target.catalog }))
	}},
	{"a server shows a node otherwise", serversAgree, func(r *rand.Rand, _ *heard, k *kept) {
		server := anyOf(r, k.inventories, every)
		lines := slices.Clone(k.inventories[server])
		lines[r.IntN(len(lines))] += "?"
		k.inventories = with(k.inventories, server, lines)
	}},
	{"a server shows one node less", serversAgree, func(r *rand.Rand, _ *heard, k *kept) {
		server := anyOf(r, k.inventories, every)
		k.inventories = with(k.inventories, server, k.inventories[server][1:])
	}},
}

func acknowledgedJob(t *heard, job string) bool {
	for _, order := range t.orders {
		if order.job == job {
			return true
		}
	}
	return false
}

func anyExecution(r *rand.Rand, t *heard) sim.Execution {
	all := slices.SortedFunc(maps.Keys(t.executions), func(a, b sim.Execution) int { return strings.Compare(a.Node+a.Transaction, b.Node+b.Transaction) })
	return all[r.IntN(len(all))]
}

func anyTarget(r *rand.Rand, k *kept) releaseTargetKept {
	var all []releaseTargetKept
	for _, id := range slices.Sorted(maps.Keys(k.releases)) {
		for _, target := range k.releases[id].targets {
			if target.state == "changed" {
				all = append(all, target)
			}
		}
	}
	return all[r.IntN(len(all))]
}

// catchAll does each mutation to what was seen, and looks whether the judge finds just what it breaks.
func catchAll(t *testing.T, seed uint64, seen heard, there kept) {
	t.Helper()
	caught := map[invariant]bool{}
	for i, m := range mutations {
		heard, kept := seen, there
		m.do(rand.New(rand.NewPCG(seed, uint64(i))), &heard, &kept)
		found := judgeHavoc(heard, kept)
		if !slices.ContainsFunc(found, func(b breach) bool { return b.invariant == m.breaks }) {
			t.Errorf("%s, and the judge does not find that %q is broken: %v", m.name, m.breaks, found)
		}
		caught[m.breaks] = true
	}
	for _, i := range invariants {
		if !caught[i] {
			t.Errorf("no mutation breaks %q", i)
		}
	}
}

// The judge of several servers finds nothing in what is well, and each thing that goes wrong.
func TestTheJudgeOfServersCanFail(t *testing.T) {
	t.Parallel()
	seen, there := wellSeen()
	if found := judgeHavoc(seen, there); len(found) > 0 {
		t.Errorf("all is well, and the judge finds %v", found)
	}
	for seed := range uint64(20) {
		catchAll(t, seed, seen, there)
	}
}

// wellSeen is a small story in which nothing is wrong.
func wellSeen() (heard, kept) {
	zero := 0
	t := heard{
		facts: map[string]factsTold{
			"sim-1": {sent: map[int64]int64{1: 10, 2: 20, 3: 30}, acknowledged: 2}, "sim-2": {sent: map[int64]int64{1: 10, 2: 20}, acknowledged: 1},
		},
		reports: map[string]bool{"r1": true, "r2": false, "r3": true},
		runs:    map[string]said{"sim-1 r3": {"1 begin", "2 end"}},
		applied: map[string][]string{"sim-1": {"c1", "c2"}, "sim-2": {"c3", "c4"}},
		orders:  map[string]orderTold{"order-1": {"1", []string{"sim-1", "real-1"}}, "order-2": {"", []string{"sim-1"}}},
		executions: map[sim.Execution]sim.Count{
			{Node: "sim-1", Transaction: "t1"}: {Begun: 1}, {Node: "real-1", Transaction: "t2"}: {Begun: 1}, {Node: "sim-2", Transaction: "t3"}: {Begun: 1},
		},
		marks:    map[string]map[string]int{"real-1": {"order-1": 1}},
		releases: map[string]releaseTold{"1": {promoted: []int{1}}},
		edition:  "7", editions: map[string]string{"real-1": "7"},
	}
	k := kept{
		facts: map[string][2]int64{"sim-1": {3, 30}, "sim-2": {2, 20}}, reports: map[string]int{"r1": 1, "r2": 1, "r3": 1},
		runs:     map[string]said{"sim-1 r3": {"1 begin", "2 end"}, "sim-1 r1": {"1 begin", "2 resource", "3 end"}},
		catalogs: map[string]string{"sim-1": "c2", "sim-2": "c4"}, jobs: map[string]string{"1": "finished", "2": "finished"}, labels: map[string]int{"order-1": 1},
		jobRuns: []jobRunKept{
			{job: "1", transaction: "t1", node: "sim-1", state: "succeeded", exitCode: &zero, lines: 2},
			{job: "1", transaction: "t2", node: "real-1", state: "succeeded", exitCode: &zero, lines: 1},
			{job: "2", transaction: "t3", node: "sim-2", state: "succeeded", exitCode: &zero, lines: 2},
		},
		releases:    map[string]releaseKept{"1": {state: "done", wave: 2, entries: 1, targets: []releaseTargetKept{{"sim-2", "changed", "c4"}}}},
		inventories: map[string][]string{},
	}
	for _, server := range serverPlaces {
		k.inventories[server] = []string{"sim-1 connected", "sim-2 connected"}
	}
	return t, k
}
