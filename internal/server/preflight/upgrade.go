package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// Upgrade says what a start of this program would do to the records that these settings name. It changes nothing.
func Upgrade(ctx context.Context, c settings.Config) []checkup.Finding {
	u, err := sql.Examine(ctx, c.Records(c.Data))
	if err == nil {
		err = u.Refusal()
	}
	if err != nil {
		return []checkup.Finding{checkup.Failed("records", err, "")}
	}
	all := []checkup.Finding{schemaCheck(u)}
	if u.Schema == 0 {
		return all
	}
	for _, m := range u.Pending {
		all = append(all, stepCheck(m))
	}
	return append(append(all, neighbourCheck(u, c, holderOf(c.Data))...), wayBackCheck(u, c)...)
}

// schemaCheck compares what the records have with what this program has.
func schemaCheck(u sql.Upgrade) checkup.Finding {
	const check = "records"
	switch {
	case u.Schema == 0:
		return checkup.Goodf(check, "there are none yet: the first start makes them, with schema %d", u.Newest)
	case len(u.Pending) == 0:
		return checkup.Goodf(check, "they have schema %d, which is this program's: nothing is changed", u.Schema)
	}
	return checkup.Goodf(check, "they have schema %d (of tutti %s); a start of this program brings them to schema %d, by %s",
		u.Schema, cmp.Or(u.Writer, "of an unknown version"), u.Newest, fault.Count(len(u.Pending), "migration"))
}

func stepCheck(m sql.Migration) checkup.Finding {
	f := checkup.Goodf(fmt.Sprintf("migration %d", m.Number), "%s (%s): %s", m.Name, m.Kind, m.Why)
	if m.Kind == sql.Contract {
		f.State, f.Mend = checkup.Warning, "all servers have to be stopped before this version starts"
	}
	return f
}

// neighbourCheck says whether servers that run may go on. holder is the process of the one that uses this data directory.
func neighbourCheck(u sql.Upgrade, c settings.Config, holder string) []checkup.Finding {
	const check = "servers"
	names := sql.Names(u.Running)
	if c.Database == "" {
		if holder == "" {
			return nil
		}
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: "process " + holder + " uses these records, and SQLite has one server at a time",
			Mend: "stop it, and start this version in its place",
		}}
	}
	if names == "" {
		return []checkup.Finding{checkup.Goodf(check, "none uses these records now")}
	}
	if err := u.InTheWay(); err != nil {
		return []checkup.Finding{checkup.Failed(check, err, "stop all of them; until then this version refuses to start")}
	}
	return []checkup.Finding{checkup.Goodf(check, "they may go on while others have this version, and can be brought to it one by one: %s", names)}
}

// wayBackCheck says what is kept of the records as they are.
func wayBackCheck(u sql.Upgrade, c settings.Config) []checkup.Finding {
	const check = "way back"
	if len(u.Pending) == 0 {
		return nil
	}
	if c.Database != "" {
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: "no copy is made of a PostgreSQL database, and the version before refuses it afterwards",
			Mend: "make a backup before: tutti backup create",
		}}
	}
	const must = "make room: this version does not start without that copy"
	path := c.Records(c.Data).Path
	info, err := os.Stat(path)
	free, err2 := datadir.FreeBytes(filepath.Dir(path))
	if err := errors.Join(err, err2); err != nil {
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: fmt.Sprintf("the start keeps a copy of %s, if there is room, which is not known: %v", path, err), Mend: must,
		}}
	}
	if free < info.Size() {
		return []checkup.Finding{{
			Check: check, State: checkup.Broken, Found: fmt.Sprintf("there is no room for a copy of %s (%d MiB); %d MiB are free", path, info.Size()>>20, free>>20),
			Mend: must,
		}}
	}
	return []checkup.Finding{checkup.Goodf(check, "the start keeps a copy, %s.schema-%d", path, u.Schema)}
}
