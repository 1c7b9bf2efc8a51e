package agent

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// schedule looks at the catalog that is kept, at what else lets Puppet run, and at reports that wait.
func (d Doctor) schedule(ctx context.Context) []Finding {
	all := []Finding{d.runs(ctx)}
	kept := catalogs{dir: filepath.Join(d.Config.Data, "catalogs"), node: d.name, log: slog.New(slog.DiscardHandler)}
	if there, _ := exists(kept.path(currentName)); there {
		all = append(all, kept.examine())
	}
	waiting := (&reports{dir: filepath.Join(d.Config.Data, "reports")}).Waiting()
	if waiting > 0 {
		all = append(all, Finding{
			Check: "reports", State: Warning, Found: fault.Are(waiting, "report") + " kept here that no server has",
			Mend: "the agent delivers them when it is connected, and keeps them for " + fault.Duration(d.Config.SpoolTTL) + "; its log says why none took them",
		})
	}
	return all
}

func (c *catalogs) examine() Finding {
	if err := c.open(); err != nil {
		return broken("catalog", err)
	}
	if c.kept.Catalog == "" {
		return Finding{Check: "catalog", State: Warning, Found: c.path(currentName) + " cannot be read", Mend: "the agent fetches it again when it is connected"}
	}
	if !intact(c.document(c.kept.Catalog), c.kept.Catalog) {
		return Finding{
			Check: "catalog", State: Broken, Found: c.document(c.kept.Catalog) + " is damaged: it is never applied",
			Mend: "the agent fetches it again when it is connected",
		}
	}
	return good("catalog", "%.12s of %s is whole", c.kept.Catalog, c.kept.Environment)
}

// runs looks for what keeps scheduled runs from being done, or doubles them.
func (d Doctor) runs(ctx context.Context) Finding {
	if d.Config.Runs != RunsScheduled {
		return good("runs", "off: Puppet runs when it is ordered to, or by a service of its own")
	}
	if other := activeService(ctx); other != "" {
		return Finding{
			Check: "runs", State: Warning, Found: other + " lets Puppet run, too: each catalog is applied twice",
			Mend: "systemctl disable --now " + other + ", or set runs: off in agent.yaml",
		}
	}
	path, err := findPuppet(d.Config.Puppet)
	if err != nil {
		return Finding{Check: "runs", State: Broken, Found: "they are scheduled, but " + fault.Detail(err), Mend: "install puppet, or set runs: off in agent.yaml"}
	}
	lock, err := puppetSays(ctx, path, "config", "print", "agent_disabled_lockfile", "--section", "agent")
	if err == nil {
		if there, _ := exists(lock); there {
			return Finding{Check: "runs", State: Warning, Found: "Puppet is disabled on this node: " + lock + " is there", Mend: "puppet agent --enable"}
		}
	}
	return good("runs", "every %s", fault.Duration(d.Config.RunInterval))
}

// OtherSchedule is a unit of systemd, beside an agent that lets Puppet run by itself, that does the same; empty: none is known.
func OtherSchedule(ctx context.Context) string { return activeService(ctx) }

// activeService is a unit of systemd that lets Puppet run; empty: none is known.
func activeService(ctx context.Context) string {
	systemctl, err := exec.LookPath("systemctl")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, unit := range []string{"puppet.service", "puppet.timer", "puppet-run.timer"} {
		cmd := exec.CommandContext(ctx, systemctl, "is-active", unit) //nolint:gosec // see above
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		if out, err := cmd.Output(); err == nil && strings.TrimSpace(string(out)) == "active" {
			return unit
		}
	}
	return ""
}
