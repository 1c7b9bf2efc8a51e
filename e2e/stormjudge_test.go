//go:build soak

package e2e_test

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/sim"
)

// settle lets the nodes have the last word, and waits until nothing is left to do.
func (s *storm) settle(t *testing.T) {
	t.Helper()
	s.each(t, func(i int) error {
		if s.nodes[i].acknowledged {
			return nil
		}
		return s.nodes[i].send(t.Context(), s.url)
	})
	db := openDatabase(t, s.server)
	left := map[string]int{}
	ok := within(2*patience, func() bool {
		for what, query := range map[string]string{
			"compilations that are wanted or leased":     "SELECT COUNT(*) FROM compilations WHERE state IN ('wanted', 'leased')",
			"sets of facts that are not applied":         "SELECT COUNT(*) FROM fact_intake",
			"changes of nodes that nobody has looked at": "SELECT COUNT(*) FROM changes",
			"environments that are behind":               "SELECT COUNT(*) FROM marks WHERE environment <> '' AND done = 0",
		} {
			left[what] = count(t, db, query)
		}
		for _, n := range left {
			if n > 0 {
				return false
			}
		}
		return true
	})
	if !ok {
		t.Errorf("the work does not end: %v", left)
	}
}

// texts are the texts that a query gives.
func texts(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// judge compares what the server has with what was done.
func (s *storm) judge(t *testing.T) {
	t.Helper()
	s.judgeFacts(t)
	s.judgeCatalogs(t)
	s.judgeCompilations(t)
	s.judgeRuns(t)
	checkIntegrity(t, s.server)
}

// judgeFacts looks whether every node's newest facts, all of which are acknowledged by now, are there.
func (s *storm) judgeFacts(t *testing.T) {
	t.Helper()
	client := apiClient(t, s.server)
	submitted, lives := int64(0), 0
	s.each(t, func(i int) error {
		n := s.nodes[i]
		facts, err := api.NodeFacts.Call(t.Context(), client, api.NameRequest{Name: n.name})
		if err != nil {
			return err
		}
		var stored struct{ Dial, Noise int }
		if err := json.Unmarshal(facts.Values, &stored); err != nil {
			return err
		}
		if stored.Dial != n.dial || stored.Noise != n.noise {
			t.Errorf("%s: stored are dial %d and noise %d, acknowledged %d and %d", n.name, stored.Dial, stored.Noise, n.dial, n.noise)
		}
		return nil
	})
	for _, n := range s.nodes {
		submitted += n.number
		lives += n.lives
	}
	t.Logf("%d submissions of facts by %d processes of %d nodes", submitted, lives, stormNodes)
	if submitted < 2*stormNodes || lives <= stormNodes {
		t.Error("the storm was none")
	}
}

// judgeCatalogs compares what every node may have with what a server gives that has compiled nothing before.
func (s *storm) judgeCatalogs(t *testing.T) {
	t.Helper()
	fresh := startServer(t, "--autosign", "all", "--access-log=false", "--max-load", "0")
	fresh.tutti(t, "code", "deploy", "--no-check", "production", s.code)
	enroller, err := sim.NewEnroller(fresh.url, fresh.roots(t))
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	s.each(t, func(i int) error {
		n := s.nodes[i]
		identity, err := enroller.Enrol(t.Context(), n.name)
		if err != nil {
			return err
		}
		again := newStormNode(n.name, n.role, s.seed, i, identity)
		defer again.client.CloseIdleConnections()
		again.dial, again.noise = n.dial, n.noise
		if err := again.submit(t.Context(), fresh.url); err != nil {
			return err
		}
		want, err := again.pointer(t.Context(), fresh.url)
		if err != nil {
			return err
		}
		got, err := n.pointer(t.Context(), s.url)
		if got.Catalog != want.Catalog {
			t.Errorf("%s may have catalog %s of version %s; compiled from scratch it is %s of %s",
				n.name, got.Catalog.Short(), got.Version.Short(), want.Catalog.Short(), want.Version.Short())
		}
		return err
	})
}

// judgeCompilations counts what was compiled: once for each node at first, for each value of a fact that its
// catalog has, and for each edition of its role; and again where the one who compiled was killed.
func (s *storm) judgeCompilations(t *testing.T) {
	t.Helper()
	db := openDatabase(t, s.server)
	compiled := count(t, db, "SELECT COALESCE(SUM(attempts), 0) FROM compilations WHERE certname LIKE 'sim-%'")
	reasons := s.touched
	for _, n := range s.nodes {
		reasons += n.dials
	}
	t.Logf("%d compilations begun for %d reasons; leases lost: at most %d", compiled, reasons, s.lost)
	if compiled > reasons+s.lost || compiled < stormNodes {
		t.Errorf("%d compilations were begun, want %d to %d", compiled, stormNodes, reasons+s.lost)
	}
	if failed := failures(t, db); len(failed) > 0 {
		t.Errorf("compilations failed, for each error how many, and one of them:\n%s", strings.Join(failed, "\n"))
	}
}

// failures are the different errors of compilations of the storm's nodes, the most frequent first.
func failures(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return texts(t, db, `SELECT COUNT(*) || ' times, ' || MIN(certname) || ': ' || error FROM compilations
		WHERE state = 'failed' AND certname LIKE 'sim-%' GROUP BY error ORDER BY COUNT(*) DESC, error`)
}

// Each error of a storm is told, not the first by name alone.
func TestEachFailureOfAStormIsTold(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE compilations (certname TEXT, state TEXT, error TEXT);
		INSERT INTO compilations VALUES ('sim-1', 'failed', 'a'), ('sim-2', 'failed', 'b'), ('sim-3', 'failed', 'b'), ('sim-4', 'done', ''), ('web', 'failed', 'c')`); err != nil {
		t.Fatal(err)
	}
	same(t, "failures", []string{"2 times, sim-2: b", "1 times, sim-1: a"}, failures(t, db))
}
