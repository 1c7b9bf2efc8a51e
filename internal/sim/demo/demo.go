package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed all:control-repo
var controlRepo embed.FS

// Modules are the modules from elsewhere that the control repository uses, and
// ModuleDir is where Debian's packages puppet-module-puppetlabs-* put them.
var Modules = []string{"concat", "inifile", "stdlib"}

// ModuleDir is where Debian's packages put modules.
const ModuleDir = "/usr/share/puppet/modules"

// Config says where and how the demo runs.
type Config struct {
	Binary string    // the tutti executable
	Dir    string    // scratch directory; empty: a new one, removed at the end
	Listen string    // address of the server
	Nodes  int       // simulated ones
	Keep   bool      // stay up until the context ends
	Out    io.Writer // what is shown
	Env    []string
}

// node is one of the demo's nodes.
type node struct{ name, role string }

// domain is what the names of all nodes end with; the server signs their requests at once.
const domain = "demo.test"

var nodes = []node{{"web-1." + domain, "web"}, {"db-1." + domain, "db"}}

// Run shows everything once, and stays up if Keep is set.
func Run(ctx context.Context, c Config) (err error) {
	if err := needs(); err != nil {
		return err
	}
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "tutti-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.Dir)) }()
	}
	repo := filepath.Join(c.Dir, "control-repo")
	if err := writeRepo(repo); err != nil {
		return err
	}
	s := &stage{Config: c, env: append(cleanEnv(c.Env), "TUTTI_DATA="+filepath.Join(c.Dir, "data"))}
	d := &demo{
		stage: s, repo: &repository{stage: s, dir: repo}, puppets: &puppets{stage: s}, simulated: &simulated{stage: s}, compilations: &compilations{stage: s},
	}
	if err := d.repo.begin(ctx); err != nil {
		return err
	}
	var running []func() error // what ends each
	defer func() {
		for _, stop := range slices.Backward(running) {
			err = errors.Join(err, stop())
		}
	}()
	join := func(start func(context.Context) (func() error, error)) error {
		stop, err := start(ctx)
		if err == nil {
			running = append(running, stop)
		}
		return err
	}
	if err := join(s.startServer); err != nil {
		return err
	}
	if err := s.console(ctx); err != nil {
		return err
	}
	if err := d.play(ctx); err != nil {
		return err
	}
	if err := join(d.puppets.start); err != nil {
		return err
	}
	if c.Nodes > 0 {
		if err := join(d.simulated.start); err != nil {
			return err
		}
	}
	if err := d.order(ctx); err != nil {
		return err
	}
	if err := d.commit(ctx); err != nil {
		return err
	}
	if err := d.story(ctx); err != nil || !c.Keep {
		return err
	}
	return d.keep(ctx)
}

// demo is what is shown, scene after scene.
type demo struct {
	stage        *stage
	repo         *repository
	puppets      *puppets
	simulated    *simulated
	compilations *compilations
}

// keep says what can be tried, and waits until ctx is done.
func (d *demo) keep(ctx context.Context) error {
	d.stage.title("The server stays up. Ctrl-C ends it and removes everything")
	d.stage.sayf("export TUTTI_DATA=%s", filepath.Join(d.stage.Dir, "data"))
	d.stage.sayf("control repository: %s   change it, then: tutti code deploy production %s", d.repo.dir, d.repo.dir)
	for _, n := range nodes {
		d.stage.sayf("run %s again: %s", n.name, strings.Join(d.puppets.agent(n), " "))
	}
	d.stage.sayf("order something: tutti command run uptime --where 'facts.role = \"web\"'")
	if err := d.stage.console(ctx); err != nil {
		return err
	}
	d.stage.sayf("A tour in four steps: TUTTI_DATA=%s %s console open --page '/?tour=1'", filepath.Join(d.stage.Dir, "data"), d.stage.Binary)
	<-ctx.Done()
	return nil
}

// play is the demo itself, once the server is up.
func (d *demo) play(ctx context.Context) error {
	d.stage.title("Deploy a control repository")
	if err := d.stage.tutti(ctx, "code", "deploy", "production", d.repo.dir); err != nil {
		return err
	}
	for _, turn := range []string{"first run: everything is made", "second run: nothing changes"} {
		for _, n := range nodes {
			d.stage.title(n.name + ", " + turn)
			if err := d.puppets.run(ctx, n, turn[0] == 'f'); err != nil {
				return err
			}
		}
	}
	d.stage.title("What the server knows")
	for _, args := range [][]string{{"ca", "list"}, {"node", "list"}, {"report", "list"}} {
		if err := d.stage.tutti(ctx, args...); err != nil {
			return err
		}
	}
	id, err := d.stage.reportID(ctx)
	if err != nil {
		return err
	}
	return d.stage.tutti(ctx, "report", "show", id)
}

// needs says what is missing, and how to get it.
func needs() error {
	for program, pkg := range map[string]string{"puppet": "puppet-agent", "git": "git"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("the demo needs %s: apt-get install %s", program, pkg)
		}
	}
	for _, module := range Modules {
		if _, err := os.Stat(filepath.Join(ModuleDir, module)); err != nil {
			return fmt.Errorf("the demo needs the module %s: apt-get install puppet-module-puppetlabs-%s", module, module)
		}
	}
	return nil
}

// writeRepo writes the sample control repository with its modules.
func writeRepo(dir string) error {
	sample, err := fs.Sub(controlRepo, "control-repo")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, sample); err != nil {
		return err
	}
	for _, module := range Modules {
		source, err := filepath.EvalSymlinks(filepath.Join(ModuleDir, module))
		if err != nil {
			return err
		}
		if err := copyModule(filepath.Join(dir, "modules", module), source); err != nil {
			return err
		}
	}
	return nil
}

// copyModule copies what a module needs at run time, links followed.
func copyModule(to, from string) error {
	for _, part := range []string{"lib", "manifests", "functions", "types", "templates", "files", "metadata.json"} {
		source := filepath.Join(from, part)
		info, err := os.Stat(source)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.IsDir():
			err = os.CopyFS(filepath.Join(to, part), os.DirFS(source))
		default:
			var content []byte
			if content, err = os.ReadFile(source); err == nil {
				err = os.WriteFile(filepath.Join(to, part), content, 0o644) //nolint:gosec // a copy of a public module
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cleanEnv is the environment without settings of another server.
func cleanEnv(env []string) []string {
	var clean []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "TUTTI_") && !strings.HasPrefix(entry, "FACTER_") {
			clean = append(clean, entry)
		}
	}
	return clean
}

// startTimeout is how long the server may take to answer.
const startTimeout = 5 * time.Minute
