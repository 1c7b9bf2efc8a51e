package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// settle waits until what was begun has come to its end, and gathers what clients were told, what nodes did, and what there is.
func (h *havoc) settle(t *testing.T) (heard, kept) {
	t.Helper()
	for _, name := range serverPlaces {
		within(patience, func() bool { return connected(t, h.servers[name].server) == len(h.nodes)+len(agentPlaces) }) // else they do not agree, and that is told
	}
	h.runPuppet(t)
	within(patience, func() bool {
		return h.database.sql(t,
			`SELECT (SELECT count(*) FROM job_runs WHERE state IN ('waiting', 'sent', 'running')) + (SELECT count(*) FROM releases WHERE ended_at = 0)
			+ (SELECT count(*) FROM jobs WHERE status IN ('queued', 'running', 'stopping')) + (SELECT count(*) FROM fact_intake)
			+ (SELECT count(*) FROM compilations WHERE state IN ('wanted', 'leased'))`) == "0"
	})
	var seen heard
	var there kept
	within(patience, func() bool { // nodes still apply, and send what happened
		seen, there = h.seen(t), h.there(t)
		return len(judgeHavoc(seen, there)) == 0
	})
	return seen, there
}

// runPuppet has Puppet run on the real nodes: they come to the edition that was deployed last.
func (h *havoc) runPuppet(t *testing.T) {
	t.Helper()
	var names []string
	for _, a := range h.agents {
		names = append(names, a.daemon.name)
	}
	first := h.servers[serverPlaces[0]].server
	eventually(t, patience, "Puppet runs on the real nodes", func() bool {
		return first.try(t, "run", strings.Join(names, ","), "--yes").code == 0
	})
}

// seen is what clients were told and what nodes did.
func (h *havoc) seen(t *testing.T) heard {
	t.Helper()
	h.notes.Lock()
	defer h.notes.Unlock()
	seen := h.notes.heard
	seen.reports = maps.Clone(h.notes.reports)
	seen.runs, seen.applied, seen.executions = map[string]said{}, map[string][]string{}, map[sim.Execution]sim.Count{}
	for _, fleet := range h.fleets {
		for e, did := range fleet.Recorder().All() {
			if did.Begun > 0 {
				seen.executions[e] = did
			}
		}
	}
	for _, n := range h.nodes {
		for _, a := range h.fleets[n.part].Recorder().Applied(n.name) {
			if all := streamOf(a); len(all) > 0 {
				seen.runs[n.name+" "+a.Report] = all
			}
			if !a.Interrupted {
				seen.reports[a.Report] = true // the node sends it until it is taken
			}
			if !a.Noop && !a.Interrupted {
				seen.applied[n.name] = append(seen.applied[n.name], a.Catalog)
			}
		}
	}
	seen.edition = strconv.Itoa(h.code.number)
	seen.marks, seen.editions = map[string]map[string]int{}, map[string]string{}
	for _, a := range h.agents {
		name := a.daemon.name
		seen.editions[name] = readText(t, filepath.Join(a.scratch, "edition"))
		seen.marks[name] = map[string]int{}
		for label := range strings.Lines(readText(t, filepath.Join(h.marks, name))) {
			seen.marks[name][strings.TrimSpace(label)]++
		}
		for transaction, did := range ranOn(t, a.daemon) {
			seen.executions[sim.Execution{Node: name, Transaction: transaction}] = did
		}
	}
	return seen
}

// ranOn is what a real agent has a record of that servers asked for.
func ranOn(t *testing.T, d *daemon) map[string]sim.Count {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.dir, "data", "spool", "*", "metadata"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]sim.Count{}
	for _, path := range found {
		var record struct {
			Requester string `json:"requester"`
			Error     string `json:"execution_error"` // why it did not begin
		}
		if err := json.Unmarshal([]byte(readText(t, path)), &record); err != nil || !strings.HasPrefix(record.Requester, "pcp:///server") {
			continue // it let Puppet run by itself, or writes just now
		}
		did := sim.Count{Begun: 1}
		code, err := os.ReadFile(filepath.Join(filepath.Dir(path), "exitcode"))
		_, pidErr := os.Lstat(filepath.Join(filepath.Dir(path), "pid"))
		switch {
		case err == nil:
			did.ExitCode, _ = strconv.Atoi(strings.TrimSpace(string(code)))
		case record.Error != "" || pidErr != nil: // a full disk may have no room for why it did not begin
			continue
		}
		all[filepath.Base(filepath.Dir(path))] = did
	}
	return all
}

// there is what the database says, and how the servers show it.
func (h *havoc) there(t *testing.T) kept {
	t.Helper()
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	k := kept{
		facts: map[string][2]int64{}, reports: map[string]int{}, catalogs: map[string]string{}, jobs: map[string]string{}, labels: map[string]int{},
		releases: map[string]releaseKept{}, inventories: map[string][]string{}, queued: number(h.database.sql(t, "SELECT count(*) FROM fact_intake")),
	}
	for _, row := range h.database.rows(t,
		`SELECT n.certname, a.value, b.value FROM nodes n JOIN facts a ON a.node_id = n.id JOIN fact_paths p ON p.id = a.path_id AND p.path = 'number'
		JOIN facts b ON b.node_id = n.id JOIN fact_paths q ON q.id = b.path_id AND q.path = 'value'`) {
		k.facts[row[0]] = [2]int64{int64(number(row[1])), int64(number(row[2]))}
	}
	for _, row := range h.database.rows(t, "SELECT transaction_uuid, count(*) FROM reports GROUP BY 1") {
		k.reports[row[0]] = number(row[1])
	}
	for _, row := range h.database.rows(t, "SELECT n.certname, c.digest FROM nodes n JOIN catalogs c ON c.node_id = n.id") {
		k.catalogs[row[0]] = row[1]
	}
	for _, row := range h.database.rows(t, "SELECT id, status FROM jobs") {
		k.jobs[row[0]] = row[1]
	}
	for _, row := range h.database.rows(t,
		"SELECT r.job_id, r.id, r.node, r.state, coalesce(r.exit_code::text, ''), r.lines, j.kind, r.reason FROM job_runs r JOIN jobs j ON j.id = r.job_id") {
		r := jobRunKept{job: row[0], transaction: row[1], node: row[2], state: row[3], lines: number(row[5]), reason: row[7]}
		if row[4] != "" {
			code := number(row[4])
			r.exitCode = &code
		}
		if row[6] != "command" { // a Puppet run prints nothing that is kept
			r.lines = max(r.lines, 1)
		}
		k.jobRuns = append(k.jobRuns, r)
	}
	for _, row := range h.database.rows(t,
		`SELECT id, state, wave, (SELECT count(*) FROM release_entries e WHERE e.release_id = r.id AND e.text LIKE 'promoted%') FROM releases r`) {
		k.releases[row[0]] = releaseKept{state: row[1], wave: number(row[2]), entries: number(row[3])}
	}
	for _, row := range h.database.rows(t, "SELECT release_id, node, state, catalog FROM release_targets ORDER BY release_id, node") {
		r := k.releases[row[0]]
		r.targets = append(r.targets, releaseTargetKept{row[1], row[2], row[3]})
		k.releases[row[0]] = r
	}
	k.runs = map[string]said{}
	for _, row := range h.database.rows(t,
		"SELECT node, run, kind, status, type, detail FROM run_events WHERE node LIKE 'sim-%' AND kind IN ('begin', 'resource', 'missing', 'end') ORDER BY number") {
		k.runs[row[0]+" "+row[1]] = append(k.runs[row[0]+" "+row[1]], keptLine(t, row))
	}
	for name, client := range h.clients {
		k.inventories[name] = h.inventory(t, client)
		if name == serverPlaces[0] {
			for _, job := range pages(t, func(after string) (api.List[api.Job], error) {
				return api.JobList.Call(t.Context(), client, api.JobListRequest{Kind: "command", Limit: 1000, After: after})
			}) {
				k.labels[job.Description]++
			}
		}
	}
	return k
}

// keptLine is a row of the stream of events, as said has it.
func keptLine(t *testing.T, row []string) string {
	t.Helper()
	var e pxp.RunEvent
	if err := json.Unmarshal([]byte(row[5]), &e); err != nil {
		t.Fatalf("%v: %s", err, row[5])
	}
	return line(e.N, row[2], row[3], row[4], e.Title, e.At)
}

// pages are all things of a list.
func pages[Thing any](t *testing.T, ask func(after string) (api.List[Thing], error)) (all []Thing) {
	t.Helper()
	for after := ""; ; {
		page, err := ask(after)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			return all
		}
	}
}

// inventory is what a server shows: a line for each node, job and release.
func (h *havoc) inventory(t *testing.T, client *api.Client) (lines []string) {
	t.Helper()
	for _, n := range pages(t, func(after string) (api.List[api.Node], error) {
		return api.NodeList.Call(t.Context(), client, api.NodeListRequest{Limit: 1000, After: after, Delivery: true})
	}) {
		on, facts := "nowhere", time.Time{}
		if n.FactsAt != nil {
			facts = *n.FactsAt
		}
		if n.Connected != nil {
			on = n.Connected.Server
		}
		lines = append(lines,
			fmt.Sprintf("node %s %s facts %v catalog %s report %s %s, connected with %s", n.Name, n.Environment, facts.UTC(), n.CatalogDigest, n.ReportID, n.State, on))
	}
	for _, j := range pages(t, func(after string) (api.List[api.Job], error) {
		return api.JobList.Call(t.Context(), client, api.JobListRequest{Limit: 1000, After: after})
	}) {
		lines = append(lines, fmt.Sprintf("job %s %s %v", j.ID, j.State, j.Counts))
	}
	for _, r := range pages(t, func(after string) (api.List[api.Release], error) {
		return api.ReleaseList.Call(t.Context(), client, api.ReleaseListRequest{Limit: 1000, After: after})
	}) {
		lines = append(lines, fmt.Sprintf("release %s %s %v", r.ID, r.State, r.Counts))
	}
	return lines
}

// wasReal says what happened, and fails when that was too little to show anything.
func (h *havoc) wasReal(t *testing.T, seen heard) {
	t.Helper()
	done := map[string]int{"runs of Puppet": len(seen.runs), "executions": len(seen.executions), "editions": h.code.number, "releases": len(seen.releases)}
	for _, f := range seen.facts {
		done["facts"] += int(f.acknowledged)
	}
	h.notes.Lock()
	for _, acknowledged := range h.notes.reports { // of nodes that only report; seen has those of runs, too
		if acknowledged {
			done["reports"]++
		}
	}
	h.notes.Unlock()
	for _, o := range seen.orders {
		if o.job != "" {
			done["orders"]++
		}
	}
	for _, r := range seen.releases {
		done["promotions"] += len(r.promoted)
	}
	for _, n := range h.nodes {
		if n.part == "live" && len(seen.applied[n.name]) > 0 {
			done["live nodes that applied"]++
		}
	}
	t.Logf("acknowledged, or done: %v", done)
	least := map[string]int{
		"facts": 2 * len(h.nodes), "reports": len(h.nodes) / 2, // each node sends facts before all begins
		"editions": 2, "orders": 5, "executions": 5, "runs of Puppet": len(h.nodes) / 2, // the first edition is deployed before
		"releases": 1, "promotions": 1, "live nodes that applied": len(h.nodes) / len(nodePlaces),
	}
	for _, what := range slices.Sorted(maps.Keys(least)) {
		if done[what] < least[what] {
			t.Errorf("%d %s: that shows nothing, at least %d should be", done[what], what, least[what])
		}
	}
}
