package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/parallel"
)

// puppet8Engine is the Ruby of a Puppet 8 that runs beside this machine's Puppet.
func puppet8Engine(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../tools/puppet8-engine", t.TempDir()).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		t.Fatalf("there is no Puppet 8: run make puppet8-root (%v)\n%s", err, out)
	}
	return lines[len(lines)-1]
}

// Every command of the page about versions of Puppet: a fleet goes from Puppet 7 to Puppet 8, and back, with two real agents of each
// version. Which Puppet compiled is what the nodes say themselves.
func TestFromPuppet7To8(t *testing.T) {
	begin(t, 150)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--reuse-check", "0", "--engines", "puppet8:"+puppet8Engine(t))
	dir := t.TempDir()
	code := func(to, role string) {
		write(t, filepath.Join(dir, to, "manifests/site.pp"),
			"# what a node is for\nfile { 'said':\n  path    => \"${facts['scratch']}/said\",\n  content => \"for ${"+role+"}, by ${serverversion}\\n\",\n}\n")
	}
	code("repo", "role")
	code("mended-repo", "facts['story']")
	versionOf(t, s, filepath.Join(dir, "repo"))
	nodes := make([]scheduled, 4)
	err := parallel.Each(len(nodes), 2, func(i int) error {
		agents := []installation{machines, machines, debian13, debian13}[i]
		n := agents.joinScheduled(t, s, []string{"a", "b", "c", "d"}[i]+".test", "web", "--run-interval", "8760h", "--catalog-poll-interval", "1h")
		n.run(t, 2)
		n.start(t)
		nodes[i] = n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	said := func(after, word string) {
		t.Helper()
		for _, n := range nodes {
			text := n.read(t, "said")
			if text != word {
				t.Errorf("after %s, %s says %q, not %q", after, n.agent.name, text, word)
			}
		}
	}
	var other string
	for _, e := range decode[api.List[api.Engine]](t, s, "engine", "list").Items {
		if e.Name == "puppet8" {
			other = e.Puppet
		}
	}
	own := strings.TrimSpace(execute(t, cleanEnv(), patience, "puppet", "--version").out)
	said("the first run", "for , by "+own+"\n")
	for _, n := range nodes {
		n.settled(t)
	}
	s.follows(t, dir, "puppet-versions.md", func(line string) {
		switch {
		case strings.HasPrefix(line, "tutti code deploy production ./mended-repo --engine puppet8"):
			said(line, "for web, by "+other+"\n")
		case line == "tutti rollback --release 1":
			said(line, "for , by "+own+"\n")
		}
	})
}

// The rows of the page's table of code that both compile, or do not.
func TestWhatTheTwoPuppetsCompile(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--engines", "puppet8:"+puppet8Engine(t))
	page, err := os.ReadFile(filepath.Join(docs, "puppet-versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(.+)` \\| `(.+)` \\| `(.+)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), "include \"rows::row${facts['row']}\"\n")
	for i, row := range rows {
		class := fmt.Sprintf("row%d", i)
		write(t, filepath.Join(dir, "modules/rows/manifests", class+".pp"), "class rows::"+class+" {\n  notify { 'row': message => String("+row[1]+") }\n}\n")
	}
	s.tutti(t, "code", "deploy", "seven", dir, "--force")
	s.tutti(t, "code", "deploy", "eight", dir, "--force", "--engine", "puppet8")
	n := enrol(t, s, "rows.test")
	for i, row := range rows {
		for engine, environment := range []string{"seven", "eight"} {
			answer, err := n.catalog(environment, map[string]any{"row": strconv.Itoa(i)})
			if err != nil {
				t.Fatal(err)
			}
			want, status := fmt.Sprintf(`"message":%q`, row[2+engine]), http.StatusOK
			if words, fails := strings.CutPrefix(row[2+engine], "Error: "); fails {
				want, status = words, http.StatusInternalServerError
			}
			if answer.status != status || !strings.Contains(answer.body, want) {
				t.Errorf("%s in %s: the page says %s, it is %d %s", row[1], environment, row[2+engine], answer.status, answer.body)
			}
		}
	}
}
