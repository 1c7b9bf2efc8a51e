package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// How the story's releases go: one node goes first, the group canary, and then the rest, or a few and then the rest.
var (
	canaryFirst = []string{"--wave", "@canary", "--wave", "rest"}
	carefully   = []string{"--wave", "@canary", "--wave", "10", "--wave", "rest", "--max-failures", "1", "--concurrency", "1"}
)

const (
	// someFailed is how `tutti release create` ends when nodes have failed.
	someFailed = 4
	// enough is how many simulated nodes there must be so that some waves are full of web servers.
	enough = 100
	// releaseEvents is what a run says that changes the template's files: its beginning and three changes. The end of the run before
	// is not counted, which may still come.
	releaseEvents = "4"
)

// story is a change on its way from a branch to the fleet: a good one is previewed and released in waves, a bad one is stopped by its
// failures and taken back.
func (d *demo) story(ctx context.Context) error {
	d.stage.title("Change control: from now on nodes get what is released to them, whatever is deployed; " + committedNode + " goes first")
	for _, args := range [][]string{{"group", "create", "canary", "--pin", committedNode}, {"catalog", "mode", "--group", "All Nodes", "released"}} {
		if err := d.stage.tutti(ctx, args...); err != nil {
			return err
		}
	}
	if err := d.good(ctx); err != nil {
		return err
	}
	if d.stage.Nodes < enough {
		return d.wayBack(ctx, "1")
	}
	if err := d.bad(ctx); err != nil {
		return err
	}
	return d.wayBack(ctx, "2")
}

// good brings a change to all web servers.
func (d *demo) good(ctx context.Context) error {
	if err := d.preview(ctx, "keepalive", "s/^  root .*/&\\n  keepalive 65/", "web: keep connections open"); err != nil {
		return err
	}
	d.stage.title("Release exactly that, to one node first and then to the rest, and watch what Puppet does on the first one")
	err := d.stage.watching(ctx, []string{"--node", committedNode, "--kind", "begin,resource", "--count", releaseEvents}, func() error {
		return d.stage.tutti(ctx, append([]string{"release", "create", "--preview", "1"}, canaryFirst...)...)
	})
	if err != nil {
		return err
	}
	if err := d.see(ctx, "keepalive", "keepalive 65"); err != nil {
		return err
	}
	return d.repo.merge(ctx, "keepalive")
}

// bad releases what some nodes cannot take: the release stops, and the nodes whose turn has not come are left alone.
func (d *demo) bad(ctx context.Context) error {
	if err := d.preview(ctx, "bind", "s/listen/bind/", "web: bind instead of listen"); err != nil {
		return err
	}
	d.stage.title("Release it: one node, ten, the rest. With this one every second simulated node fails, and one node may: the second wave stops")
	d.simulated.failing.Store(true)
	err := d.stage.tutti(ctx, append([]string{"release", "create", "--preview", "2"}, carefully...)...)
	d.simulated.failing.Store(false)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != someFailed {
		return fmt.Errorf("a release with nodes that fail does not end with exit code %d: %w", someFailed, errors.Join(err, errNotStopped))
	}
	d.stage.title("Which nodes failed, and who was never touched; nothing more of it shall begin")
	for _, args := range [][]string{
		{"release", "nodes", "2", "--state", "failed"}, {"release", "show", "2"}, {"release", "abort", "2", "--why", "web servers cannot take it"},
	} {
		if err := d.stage.tutti(ctx, args...); err != nil {
			return err
		}
	}
	return d.see(ctx, "bind\\|listen", "bind 8081")
}

var errNotStopped = errors.New("nothing has stopped it")

// preview changes a template in a branch, and shows what that would change.
func (d *demo) preview(ctx context.Context, branch, edit, message string) error {
	d.stage.title("Change a template in a branch: " + message)
	if err := d.repo.branch(ctx, branch, edit, template, message); err != nil {
		return err
	}
	d.stage.title("Preview: what would it change, and on which nodes? Nothing is deployed or released by that")
	return d.stage.tutti(ctx, "preview", "create", "production", "--ref", d.repo.dir, "--details")
}

// see shows lines of the file that the template makes on the node that goes first, and fails unless it holds a text.
func (d *demo) see(ctx context.Context, pattern, want string) error {
	path := filepath.Join(d.puppets.home(node{name: committedNode}), "root/etc/sites.d/blog.example.test.conf")
	d.stage.sayf("$ grep %s", shown([]string{pattern, path}))
	out, err := exec.CommandContext(ctx, "grep", pattern, path).Output() //nolint:gosec // the line is ours
	d.stage.sayf("%s", strings.TrimRight(string(out), "\n"))
	if !strings.Contains(string(out), want) {
		return fmt.Errorf("%s does not say %q: %w", path, want, errors.Join(err, errNotApplied))
	}
	return nil
}

// wayBack gives nodes what they had before a release, and fails unless all nodes are green then.
func (d *demo) wayBack(ctx context.Context, release string) error {
	d.stage.title("Roll back: nothing is compiled, each node gets the catalog that it had before")
	if err := d.stage.tutti(ctx, append([]string{"rollback", "--release", release}, canaryFirst...)...); err != nil {
		return err
	}
	before := "listen 8081"
	if err := d.see(ctx, "bind\\|listen", before); err != nil {
		return err
	}
	d.stage.title("All green: every node has applied the catalog that it is to have, and no run has failed")
	for _, args := range [][]string{{"release", "list"}, {"catalog", "generations", committedNode}, {"catalog", "status", "--exit-code"}} {
		if err := d.stage.tutti(ctx, args...); err != nil {
			return err
		}
	}
	if release == "2" {
		return d.asAfter(ctx, "1")
	}
	return nil
}

// asAfter holds what nodes may have now against what a release gave them.
func (d *demo) asAfter(ctx context.Context, release string) error {
	var given []struct{ Name, Catalog string }
	if err := d.stage.ask(ctx, &given, "release", "nodes", release); err != nil {
		return err
	}
	same := 0
	for _, g := range given {
		var has struct{ Pointer struct{ Catalog string } }
		if err := d.stage.ask(ctx, &has, "catalog", "generations", g.Name); err != nil {
			return err
		}
		if has.Pointer.Catalog == g.Catalog {
			same++
		}
	}
	d.stage.sayf("%d of %s: exactly the catalog that release %s gave", same, fault.Count(len(given), "web server"), release)
	if same < len(given) || same == 0 {
		return errNotBack
	}
	return nil
}

var errNotBack = errors.New("the roll back has not given back what nodes had")
