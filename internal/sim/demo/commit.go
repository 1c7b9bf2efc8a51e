package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// quietTimeout is how long the compiler may take until nothing is left to do, and an agent until it has
// applied its catalog.
const quietTimeout = 15 * time.Minute

// The role whose data a commit changes, and the node of it whose agent is real.
const (
	committedRole = "web"
	committedNode = "web-1." + domain
)

// commit deploys a change of one role's data: only the nodes of that role are compiled, their agents are
// told, fetch their catalogs and apply them, and what happens is shown while it happens.
func (d *demo) commit(ctx context.Context) error {
	d.stage.title("Compiled ahead: every node that has sent facts has a catalog, though nobody has asked for one")
	if err := d.compilations.awaitQuiet(ctx); err != nil {
		return err
	}
	if err := d.stage.tutti(ctx, "compile", "queue"); err != nil {
		return err
	}
	before, err := d.compilations.newest(ctx)
	if err != nil {
		return err
	}
	d.stage.title("Deploy a commit that changes the data of the role " + committedRole + ", and watch " + committedNode)
	if err := d.repo.change(ctx, "s/workers: 4/workers: 6/", "data/role/"+committedRole+".yaml", committedRole+": six workers"); err != nil {
		return err
	}
	err = d.stage.watching(ctx, []string{"--node", committedNode, "--count", liveEvents}, func() error {
		if err := d.stage.tutti(ctx, "code", "deploy", "production", d.repo.dir); err != nil {
			return err
		}
		if err := d.compilations.awaitQuiet(ctx); err != nil {
			return err
		}
		return d.compilations.count(ctx, before)
	})
	if err != nil {
		return err
	}
	return d.puppets.applied(ctx, committedNode)
}

// compilations is what the server's compiler has done, and has to do.
type compilations struct{ stage *stage }

// awaitQuiet returns when nothing is to be compiled any more, twice in a row: what was deployed is
// looked at a moment after.
func (c *compilations) awaitQuiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quietTimeout)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	said := 0
	for quiet := 0; quiet < 3; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the compile queue does not empty: %w", ctx.Err())
		case <-tick.C:
		}
		var queue struct{ Wanted, Running, Resting int }
		if err := c.stage.ask(ctx, &queue, "compile", "queue"); err != nil {
			return err
		}
		quiet++
		if n := queue.Wanted + queue.Running + queue.Resting; n > 0 {
			if quiet = 0; n != said {
				c.stage.sayf("  still to compile: %s", fault.Count(n, "catalog"))
			}
			said = n
		}
	}
	return nil
}

// compilation is one row of the compiler's history.
type compilation struct {
	ID          int64
	Node, State string
	Reused      bool
}

// list lists the newest compilations, the newest first.
func (c *compilations) list(ctx context.Context, limit string) ([]compilation, error) {
	var rows []compilation
	return rows, c.stage.ask(ctx, &rows, "compile", "queue", "--environment", "production", "--limit", limit)
}

func (c *compilations) newest(ctx context.Context) (int64, error) {
	rows, err := c.list(ctx, "1")
	if err == nil && len(rows) != 1 {
		err = errors.New("nothing was compiled")
	}
	if err != nil {
		return 0, err
	}
	return rows[0].ID, nil
}

// count says how many nodes were compiled after a compilation: all of the role, and nobody else.
func (c *compilations) count(ctx context.Context, after int64) error {
	rows, err := c.list(ctx, "0")
	if err != nil {
		return err
	}
	var got []string
	for _, row := range rows {
		if row.ID <= after || row.Reused {
			continue
		}
		if got = append(got, row.Node); row.State != "done" {
			return fmt.Errorf("the compilation of %s is %s", row.Node, row.State)
		}
	}
	var all, want []struct{ Certname string }
	if err := c.stage.ask(ctx, &all, "query", "inventory[certname]{ }"); err != nil {
		return err
	}
	if err := c.stage.ask(ctx, &want, "query", fmt.Sprintf("inventory[certname]{ facts.demo_role = %q }", committedRole)); err != nil {
		return err
	}
	var names []string
	for _, w := range want {
		names = append(names, w.Certname)
	}
	slices.Sort(got)
	slices.Sort(names)
	c.stage.sayf("compiled for %d of %s; the role %s is on %s", len(got), fault.Count(len(all), "node"), committedRole, fault.Count(len(names), "node"))
	if !slices.Equal(got, names) {
		return fmt.Errorf("compiled were %.500s, of the role are %.500s", strings.Join(got, " "), strings.Join(names, " "))
	}
	return nil
}

// ask runs a command that the demo does not show, and decodes what it prints.
func (s *stage) ask(ctx context.Context, into any, args ...string) error {
	out, err := s.command(ctx, append(args, "-o", "json")...).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return fmt.Errorf("tutti %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
		}
		return err
	}
	var list struct{ Items json.RawMessage }
	if json.Unmarshal(out, &list) == nil && list.Items != nil {
		out = list.Items
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("tutti %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
