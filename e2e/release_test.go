package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// greeting is code that says a word on each node; more is added to it.
func greeting(t *testing.T, dir, word, more string) {
	t.Helper()
	write(t, filepath.Join(dir, "manifests/site.pp"), "file { \"${facts['scratch']}/said\": content => \""+word+"\\n\" }\n"+more)
}

// Every command of the pages about releases and roll back, with three nodes whose Puppet is real: a change reaches one node first and then the
// rest, byte for byte as it was previewed; one that fails stops within its budget; both are taken back. On one of the nodes a stock agent
// runs, too: it gets what was released, whatever is deployed or previewed. (A fact that changes after the preview is the matter of
// TestWhatWasPreviewedIsReleased.)
func TestReleasesInWavesAndBack(t *testing.T) {
	begin(t, 180)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--reuse-check", "0")
	dir := t.TempDir()
	greeting(t, filepath.Join(dir, "first"), "one", "")
	greeting(t, filepath.Join(dir, "control-repo"), "two", "")
	greeting(t, filepath.Join(dir, "faulty-repo"), "three", `
file { "${facts['scratch']}/more": content => "more\n" }
if $facts['story'] == 'web-1' { exec { '/bin/false': } }
`)
	versionOf(t, s, filepath.Join(dir, "first"))
	nodes := map[string]scheduled{}
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		n := joinScheduled(t, s, name+".test", name, "--run-interval", "8760h", "--catalog-poll-interval", "1h")
		n.run(t, 2)
		n.start(t)
		nodes[name] = n
	}
	said := func(what, word string, names ...string) {
		t.Helper()
		for _, name := range names {
			same(t, what+" "+name, word+"\n", nodes[name].read(t, "said"))
		}
	}
	said("before", "one", "web-1", "web-2", "web-3")
	for _, n := range nodes {
		n.settled(t)
	}
	greeting(t, filepath.Join(dir, "deployed"), "four", "")
	stock := func(line string) { // exit code 0: there is nothing to change
		switch {
		case strings.Contains(line, "catalog mode"):
			versionOf(t, s, filepath.Join(dir, "deployed"))
			nodes["web-3"].run(t, 0)
			said("before the release, with other code deployed", "one", "web-3")
		case strings.Contains(line, "--ref ./control-repo"):
			nodes["web-3"].run(t, 0)
			said("before the release, with a preview", "one", "web-3")
		case strings.Contains(line, "--description"):
			nodes["web-3"].run(t, 0)
			said("after the release", "two", "web-3")
		case strings.Contains(line, "release create --preview 2"):
			nodes["web-3"].run(t, 0)
			said("stopped before its turn", "two", "web-3")
		case line == "tutti rollback --release 2":
			nodes["web-3"].run(t, 0)
			said("after the roll back", "two", "web-3")
		}
	}
	s.follows(t, dir, "releases.md", stock)
	said("released", "two", "web-2", "web-3")
	previewed := decode[api.List[api.PreviewNode]](t, s, "preview", "nodes", "1")
	for _, n := range previewed.Items {
		d := decode[api.Delivery](t, s, "catalog", "generations", n.Name)
		var given api.Generation
		for _, g := range d.Generations {
			if g.Release == 1 {
				given = g
			}
		}
		same(t, n.Name+" was given what was previewed", n.Catalog, given.Catalog)
	}
	s.follows(t, dir, "roll-back.md", stock)
	said("taken back", "two", "web-1", "web-3")
	said("taken back to its first", "one", "web-2")
}

// follows runs every command that a page shows after "$ " in a directory, and compares what it prints with what the page shows below; … stands
// for anything. After is told of each command when it has ended.
func (s *server) follows(t *testing.T, dir, page string, after ...func(line string)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	s.followsText(t, dir, page, string(text), after...)
}

// followsText is follows for a part of a page.
func (s *server) followsText(t *testing.T, dir, page, text string, after ...func(line string)) {
	t.Helper()
	if !strings.Contains("\n"+text, "```\n$ ") {
		t.Fatalf("%s has no command to follow", page)
	}
	for block := range strings.SplitSeq(text, "```\n") {
		if !strings.HasPrefix(block, "$ ") {
			continue
		}
		for command := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
			line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n"), "\n")
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			var problems strings.Builder
			cmd.Dir, cmd.Stderr, cmd.Env = dir, &problems, append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+s.data)
			if strings.Contains(line, "tutti server --check-config") { // another program of this machine may have the usual port
				cmd.Env = append(cmd.Env, "TUTTI_LISTEN=127.0.0.1:0")
			}
			out, err := cmd.Output()
			got := strings.TrimSuffix(string(out), "\n")
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", "(?s:.*)") + "$"
			if err != nil || !regexp.MustCompile(pattern).MatchString(got) {
				t.Fatalf("%s: $ %s (%v)\nprints\n%s\n%s\nthe page says\n%s", page, line, err, got, problems.String(), want)
			}
			for _, tell := range after {
				tell(line)
			}
		}
	}
}
