package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
)

// agents lets this many puppet processes run at once.
var agents = make(chan struct{}, 2)

// agentTimeout is how long one puppet command may take.
const agentTimeout = 10 * time.Minute

// agent is one node: a stock puppet agent with configuration directories of its own.
type agent struct {
	server  *server
	stock   []string // the words that run its Puppet
	name    string
	home    string
	scratch string // everything its catalogs write is below
	env     []string
	// compiler is the port of another server that gives catalogs and takes reports;
	// empty: server does.
	compiler string
	// compilerAddress is where that server is; empty: where this one is.
	compilerAddress string
	// keyLength is 2048 bits: a new key of the default 4096 takes seconds of CPU.
	keyLength string
}

// newAgent makes a node; facts are "name=value" and reach its catalog.
func newAgent(t *testing.T, s *server, name string, facts ...string) *agent {
	t.Helper()
	return installed().agent(t, s, name, facts...)
}

// agent makes a node with this Puppet.
func (i installation) agent(t *testing.T, s *server, name string, facts ...string) *agent {
	t.Helper()
	puppet, err := i.puppet()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	a := &agent{server: s, stock: puppet, name: s.fresh(name), home: home, scratch: filepath.Join(home, "scratch"), keyLength: "2048"}
	if err := os.Mkdir(a.scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	a.env = append(cleanEnv(), "PATH="+shims+":"+os.Getenv("PATH"), "HOME="+home, "LANG=C.UTF-8", "FACTER_scratch="+a.scratch)
	a.env = append(a.env, "RUBYOPT="+ruby, "QUICK="+i.quick(t)) // see testdata/quick.rb
	for _, fact := range facts {
		a.env = append(a.env, "FACTER_"+fact)
	}
	return a
}

// puppet runs a puppet command line in the node's own directories.
func (a *agent) puppet(t *testing.T, args ...string) result {
	t.Helper()
	agents <- struct{}{}
	defer func() { <-agents }()
	words := slices.Concat(a.stock, args, a.settings())
	return execute(t, a.env, agentTimeout, words[0], words[1:]...)
}

// exec is the line of a script that becomes the node's Puppet with the script's arguments, and then its settings.
func (a *agent) exec() string {
	var line strings.Builder
	line.WriteString("exec")
	for _, word := range a.stock {
		line.WriteString(" " + shellQuoted(word))
	}
	line.WriteString(` "$@"`)
	for _, word := range a.settings() {
		line.WriteString(" " + shellQuoted(word))
	}
	return line.String() + "\n"
}

// port is where its catalogs come from.
func (a *agent) port() string {
	if a.compiler != "" {
		return a.compiler
	}
	return a.server.port()
}

// address is where that server is.
func (a *agent) address() string {
	if a.compilerAddress != "" {
		return a.compilerAddress
	}
	return a.server.at()
}

func (a *agent) settings() []string {
	settings := []string{
		"--certname", a.name, "--server", a.address(), "--ca_server", a.server.at(), "--color", "false", "--keylength", a.keyLength,
		"--serverport", a.port(), "--ca_port", a.server.port(),
		// Debian's modules bring facts that ask apt for updates: seconds of CPU for nothing.
		"--basemodulepath", filepath.Join(a.home, "no-modules"),
	}
	// Debian's agent keeps its keys apart from the rest of its configuration: ssldir has to be said.
	for _, dir := range []string{"confdir", "codedir", "vardir", "ssldir", "logdir", "rundir", "publicdir"} {
		settings = append(settings, "--"+dir, filepath.Join(a.home, dir))
	}
	return settings
}

// run is `puppet agent -t`: it must end with the exit code. 0: no changes,
// 1: no run, 2: changes, 4: failures, 6: both.
func (a *agent) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	r := a.puppet(t, append([]string{"agent", "--test"}, args...)...)
	if r.code != code {
		t.Fatalf("puppet agent --test %s on %s: exit code %d, want %d\n%s", strings.Join(args, " "), a.name, r.code, code, r.text())
	}
	return r.text()
}

// read returns a file that the node's catalog wrote.
func (a *agent) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.scratch, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tree lists what is below a directory of the scratch root: a directory ends with
// a slash, a link shows its target, a file its content.
func (a *agent) tree(t *testing.T, name string) map[string]string {
	t.Helper()
	root, found := filepath.Join(a.scratch, name), map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case entry.IsDir():
			found[rel+"/"] = ""
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			found[rel] = "-> " + target
			return err
		default:
			content, err := os.ReadFile(path)
			found[rel] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// reports lists the node's runs, newest first, as the server knows them.
func (a *agent) reports(t *testing.T) []api.Report {
	t.Helper()
	return decode[api.List[api.Report]](t, a.server, "report", "list", "--node", a.name).Items
}

// lastReport is the newest run with its resources and logs.
func (a *agent) lastReport(t *testing.T) api.Report {
	t.Helper()
	reports := a.reports(t)
	if len(reports) == 0 {
		t.Fatalf("%s has no report", a.name)
	}
	return decode[api.Report](t, a.server, "report", "show", reports[0].ID)
}

// contains fails the story for each text that is not in output.
func contains(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("the output does not hold %q:\n%s", text, tail(output, 6000))
		}
	}
}

// same compares got with want.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
