package preflight

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// Whether an upgrade can be done while servers run follows from the kinds of its migrations.
func TestWhoMayGoOnDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	expand, migrate := sql.Migration{
		Number: 61, Name: "more", Kind: sql.Expand, Why: "nobody looks.",
	}, sql.Migration{Number: 62, Name: "filled", Kind: sql.Migrate, Why: "both read it."}
	contract := sql.Migration{Number: 63, Name: "less", Kind: sql.Contract, Why: "the column goes."}
	running := []sql.Neighbour{{ID: "pup-1/1", Version: "v1.0.0", Schema: 60}, {ID: "pup-2/2"}}
	shared, alone := settings.Default(), settings.Default()
	shared.Database, alone.Data = "postgres://tutti@db/tutti", t.TempDir()
	for name, c := range map[string]struct {
		upgrade sql.Upgrade
		config  settings.Config
		holder  string
		state   checkup.Verdict
		says    string
	}{
		"expanded beside two": {
			sql.Upgrade{Schema: 60, Pending: []sql.Migration{expand, migrate}, Running: running},
			shared, "", checkup.Good,
			"pup-1/1 (tutti v1.0.0), pup-2/2 (tutti of an unknown version)",
		},
		"contracted beside two": {
			sql.Upgrade{Schema: 60, Pending: []sql.Migration{expand, contract}, Running: running},
			shared, "", checkup.Broken,
			"cannot work with, and pup-1/1 (tutti v1.0.0), pup-2/2",
		},
		"contracted alone":    {sql.Upgrade{Schema: 60, Pending: []sql.Migration{contract}}, shared, "", checkup.Good, "none uses these records now"},
		"the same schema":     {sql.Upgrade{Schema: 60, Running: running}, shared, "", checkup.Good, "one by one"},
		"SQLite that is used": {sql.Upgrade{Schema: 60, Pending: []sql.Migration{expand}}, alone, "4711", checkup.Warning, "process 4711 uses these records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := found(t, neighbourCheck(c.upgrade, c.config, c.holder), "servers")
			if f.State != c.state || !strings.Contains(f.Found, c.says) || (f.Mend == "") != (c.state == checkup.Good) {
				t.Errorf("%+v, want %s: %s", f, c.state, c.says)
			}
		})
	}
	if all := neighbourCheck(sql.Upgrade{Schema: 60}, alone, ""); len(all) != 0 {
		t.Errorf("SQLite that nobody uses: %+v", all)
	}
	for m, state := range map[sql.Migration]checkup.Verdict{expand: checkup.Good, migrate: checkup.Good, contract: checkup.Warning} {
		if f := stepCheck(m); f.State != state || !strings.Contains(f.Found, "("+string(m.Kind)+"): "+m.Why) {
			t.Errorf("%+v, want %s", f, state)
		}
	}
}

// A copy is promised only where there is known to be room for it.
func TestTheWayBack(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data = t.TempDir()
	u := sql.Upgrade{Schema: 60, Pending: []sql.Migration{{Number: 61, Kind: sql.Expand}}}
	path := c.Records(c.Data).Path
	if f := found(t, wayBackCheck(u, c), "way back"); f.State != checkup.Warning || f.Mend == "" || !strings.Contains(f.Found, "not known") {
		t.Errorf("nothing can be known of %s: %+v", path, f)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if f := found(t, wayBackCheck(u, c), "way back"); f.State != checkup.Good || !strings.Contains(f.Found, path+".schema-60") {
		t.Errorf("there is room: %+v", f)
	}
	if err := errors.Join(file.Truncate(1<<42), file.Close()); err != nil { // it takes no room
		t.Fatalf("a file with holes is needed; TMPDIR names a directory of a file system that has such: %v", err)
	}
	if f := found(t, wayBackCheck(u, c), "way back"); f.State != checkup.Broken {
		t.Errorf("there is no room: %+v", f)
	}
}

// What is looked at is left as it was: a data directory that is not there stays away.
func TestTheUpgradeOfNothing(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data = filepath.Join(t.TempDir(), "data")
	all := Upgrade(t.Context(), c)
	if f := found(t, all, "records"); len(all) != 1 || f.State != checkup.Good || !strings.Contains(f.Found, "there are none yet") {
		t.Errorf("%+v", all)
	}
	if left, _ := filepath.Glob(filepath.Join(c.Data, "*")); len(left) != 0 {
		t.Errorf("it made %v", left)
	}
}
