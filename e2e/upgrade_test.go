package e2e_test

import (
	"path/filepath"
	"testing"
)

// The records of the version before are brought to this program's, as the page says. What its newest migrations did is taken back for that; a
// real program of the version before is in TestRollingUpgrade (make test-upgrade), which needs the history of this repository.
func TestThePageAboutUpgrades(t *testing.T) {
	begin(t, 30)
	f := startSeveral(t)
	a, b := f.server(t, "a"), f.server(t, "b")
	a.startFor(t)
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	newest := f.count(t, "SELECT max(version_id) FROM goose_db_version")
	f.sql(t, "DROP TRIGGER facts_inserted ON facts; DROP TRIGGER facts_updated ON facts; DROP TRIGGER facts_deleted ON facts; "+
		"DROP FUNCTION index_facts; DROP FUNCTION unindex_facts; DROP TABLE indexed_facts; DROP TABLE indexed_paths")
	f.sql(t, "DROP TABLE moves; ALTER TABLE servers DROP COLUMN schema; ALTER TABLE servers DROP COLUMN near; DELETE FROM goose_db_version WHERE version_id >= 54")
	now := "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	f.sql(t,
		"INSERT INTO servers (id, address, version, roles, started, seen) VALUES ('pup-2/5e6f7a8b', 'https://pup-2.test:8140', '0.0.9', '', "+now+", "+now+")")
	f.upgradeSays(t, a, "What would be done")
	f.sql(t, "DELETE FROM servers WHERE id = 'pup-2/5e6f7a8b'")
	same(t, "schema after a look", 53, f.count(t, "SELECT max(version_id) FROM goose_db_version"))
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	same(t, "schema after a start", newest, f.count(t, "SELECT max(version_id) FROM goose_db_version"))
	b.startFor(t)
	f.upgradeSays(t, a, "Several servers, one by one")
	contains(t, a.tutti(t, "server", "--check-upgrade", "--config", f.settings(t, "a")), "which is this program's: nothing is changed")
}

// upgradeSays follows a part of the page about upgrades.
func (f *several) upgradeSays(t *testing.T, s *server, part string) {
	t.Helper()
	f.settings(t, filepath.Base(filepath.Dir(s.data)))
	s.followsText(t, f.dir, "upgrade.md", partOf(t, "upgrade.md", "## "+part))
}
