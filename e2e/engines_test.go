package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/parallel"
	"github.com/tutti-project/tutti/internal/program/programtest"
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

// What the other Puppet only writes in another form is named apart in a preview and counted; what it writes otherwise is a change like any other.
func TestNoiseOfTheEngine(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--reuse-check", "0", "--engines", "puppet8:"+puppet8Engine(t))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "modules/web/lib/puppet/functions/web/options.rb"), `# What a module gives that still serves Puppet 7.
Puppet::Functions.create_function(:'web::options') do
  dispatch(:options) {}
  def options
    if Puppet::Util::Package.versioncmp(Puppet.version, '8.0.0') < 0
      { 'port' => '8080', 'share' => 1, 'proxy' => nil, 'key' => 'not for everybody' }
    else
      { 'port' => 8080, 'share' => 1.0, 'key' => Puppet::Pops::Types::PSensitiveType::Sensitive.new('not for everybody') }
    end
  end
end
`)
	write(t, filepath.Join(dir, "manifests/site.pp"), `$options = web::options()
notify { 'port': message => $options['port'] }
notify { 'share': message => $options['share'] }
notify { 'whole': message => $options }
if $facts['told'] == 'yes' { notify { 'who': message => "compiled by ${serverversion}" } }
`)
	versionOf(t, s, dir)
	for name, told := range map[string]string{"quiet.test": "no", "telling.test": "yes"} {
		if answer, err := enrol(t, s, name).catalog("production", map[string]any{"told": told}); err != nil || answer.status != http.StatusOK {
			t.Fatalf("%v: %d %s", err, answer.status, answer.body)
		}
	}
	s.tutti(t, "preview", "create", "production", "--engine", "puppet8")
	text := s.tutti(t, "preview", "show", "1")
	own := strings.TrimSpace(execute(t, cleanEnv(), patience, "puppet", "--version").out)
	for _, row := range []string{
		`2 nodes: 1 change, 1 change in noise of the engine only\n`,
		`   1  ~ Notify\[who\] message "compiled by ` + regexp.QuoteMeta(own) + `" → "compiled by 8\.[0-9.]+"   1 node\n` +
			`      Noise of the engine: the other Puppet gives the same values in another form\n`,
		`\d  ~ Notify\[port\] message "8080" → 8080   2 nodes   noise of the engine: a number as text\n`,
		`\d  ~ Notify\[share\] message 1 → 1\.0   2 nodes   noise of the engine: the form of a number\n`,
		`\d  ~ Notify\[whole\] message changed \(hidden\)   2 nodes   noise of the engine: a number as text, the form of a number, the form of a rich value, undef\n`,
	} {
		if !regexp.MustCompile(row).MatchString(text) {
			t.Errorf("the preview lacks %s:\n%s", row, text)
		}
	}
	report := decode[api.PreviewReport](t, s, "preview", "show", "1")
	if report.Counts["changed"] != 2 || report.EngineOnly != 1 {
		t.Errorf("%d nodes change, %d of them in noise of the engine only; want 2 and 1", report.Counts["changed"], report.EngineOnly)
	}
	noise := map[string]string{}
	for _, change := range report.Changes {
		noise[change.Title] = strings.Join(change.EngineNoise, ", ")
	}
	same(t, "noise by title", map[string]string{
		"who": "", "port": "a number as text", "share": "the form of a number",
		"whole": "a number as text, the form of a number, the form of a rich value, undef",
	}, noise)
	contains(t, s.tutti(t, "preview", "diff", "1", "quiet.test"), `~ Notify[port] message "8080" → 8080   noise of the engine: a number as text`)
	contains(t, s.tutti(t, "preview", "nodes", "1"), "in noise of the engine only")
	if all := s.tutti(t, "preview", "show", "1", "--details") + s.tutti(t, "preview", "show", "1", "-o", "json"); strings.Contains(all, "not for everybody") {
		t.Errorf("a secret is told:\n%s", all)
	}
	if r := s.try(t, "preview", "show", "1", "--exit-code"); r.code != 3 {
		t.Errorf("with --exit-code it ends with %d", r.code)
	}

	// The same change by the code, on a node whose own catalog this engine compiled, is the code's.
	ahead := t.TempDir()
	write(t, filepath.Join(ahead, "manifests/site.pp"), "notify { 'port': message => '8080' }\n")
	s.tutti(t, "code", "deploy", "ahead", ahead, "--engine", "puppet8")
	if answer, err := enrol(t, s, "ahead.test").catalog("ahead", nil); err != nil || answer.status != http.StatusOK {
		t.Fatalf("%v: %d %s", err, answer.status, answer.body)
	}
	s.tutti(t, "preview", "create", "production", "--engine", "puppet8", "--targets", "ahead.test,quiet.test")
	ported := map[string]string{}
	for _, change := range decode[api.PreviewReport](t, s, "preview", "show", "2").Changes {
		if change.Title == "port" {
			ported[strings.Join(change.Examples, ",")] = strings.Join(change.EngineNoise, ", ")
		}
	}
	same(t, "noise of the port by node", map[string]string{"ahead.test": "", "quiet.test": "a number as text"}, ported)
	if text := s.tutti(t, "preview", "diff", "2", "ahead.test"); strings.Contains(text, "noise of the engine") ||
		!strings.Contains(text, `~ Notify[port] message "8080" → 8080`) {
		t.Errorf("the node was compiled by the engine before, and its change is the code's:\n%s", text)
	}

	// The same change by the code, under one engine, is the code's.
	s.tutti(t, "code", "deploy", "production", dir, "--engine", "puppet8")
	write(t, filepath.Join(dir, "manifests/site.pp"), "notify { 'port': message => '8080' }\n")
	s.tutti(t, "preview", "create", "production", "--ref", dir)
	if report := decode[api.PreviewReport](t, s, "preview", "show", "3"); report.EngineOnly != 0 || len(report.Changes) == 0 ||
		strings.Contains(fmt.Sprint(report.Changes), "number") {
		t.Errorf("under one engine there is no noise of it: %+v", report)
	}
}

// asksPuppet says what a Puppet has: settings with their defaults, functions and types of resources.
const asksPuppet = `require 'puppet'; require 'json'
Puppet.initialize_settings(['--confdir', '/none', '--vardir', '/none', '--codedir', '/none', '--certname', 'none'])
home = $LOADED_FEATURES.grep(%r{/puppet/version\.rb\z}).map { |path| File.dirname(path) }.last
files = ->(dir) { Dir.glob("#{dir}/**/*.rb", base: home).map { |path| path.delete_prefix("#{dir}/").delete_suffix('.rb') } }
puts JSON.generate('settings' => Puppet.settings.to_h { |name, setting| [name, setting.default.to_s] },
  'functions' => files['functions'] + files['parser/functions'], 'types' => files['type'])`

// puppetHas is its answer.
type puppetHas struct {
	Settings         map[string]string
	Functions, Types []string
}

func whatPuppetHas(t *testing.T, ruby string) (has puppetHas) {
	t.Helper()
	answer := execute(t, cleanEnv(), patience, ruby, "-e", asksPuppet)
	if err := json.Unmarshal([]byte(answer.out), &has); err != nil {
		t.Fatalf("%s: %v\n%s", ruby, err, answer.text())
	}
	if len(has.Settings) < 100 || len(has.Functions) < 50 || len(has.Types) < 10 {
		t.Fatalf("%s says too little: %s", ruby, answer.text())
	}
	return has
}

// Nothing of Puppet 7 is gone in Puppet 8, and the page has all settings that are new or have another default, but for those that name versions and paths.
func TestSettingsOfTheTwoPuppets(t *testing.T) {
	begin(t)
	seven, eight := whatPuppetHas(t, "ruby"), whatPuppetHas(t, puppet8Engine(t))
	for what, sets := range map[string][2][]string{
		"settings":  {slices.Collect(maps.Keys(seven.Settings)), slices.Collect(maps.Keys(eight.Settings))},
		"functions": {seven.Functions, eight.Functions}, "types of resources": {seven.Types, eight.Types},
	} {
		gone := slices.DeleteFunc(slices.Clone(sets[0]), func(name string) bool { return slices.Contains(sets[1], name) })
		if len(gone) > 0 {
			t.Errorf("these %s of Puppet 7 are gone in Puppet 8, and the page says that none are: %v", what, gone)
		}
	}
	page, err := os.ReadFile(filepath.Join(docs, "puppet-versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	said, differ := map[string][2]string{}, map[string][2]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (?:`([a-z0-9]+)`)? ?\\| `([a-z0-9]+)` \\| (?:the (?:agent|compiler|\\[agent)|a Puppet Server)").FindAllStringSubmatch(string(page), -1) {
		said[row[1]] = [2]string{row[2], row[3]}
	}
	var fresh []string
	for name, now := range eight.Settings {
		before, known := seven.Settings[name]
		switch {
		case !known:
			fresh = append(fresh, name)
		case before != now && !strings.Contains(before+now, "/"):
			differ[name] = [2]string{before, now}
		}
	}
	same(t, "defaults that differ", differ, said)
	for _, name := range fresh {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the new setting %s", name)
		}
	}
}

// Code that only one engine can compile goes on with that one: the step to the other is refused, and a preview says where it fails.
func TestCodeForOneEngineOnly(t *testing.T) {
	begin(t, 30)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--engines", "puppet8:"+puppet8Engine(t))
	dir := t.TempDir()
	const function = "modules/fresh/lib/puppet/functions/fresh/told.rb"
	write(t, filepath.Join(dir, function), `# It passes arguments on as Ruby can since 3.2.
Puppet::Functions.create_function(:'fresh::told') do
  def told(*) = joined(*)

  def joined(*words) = words.join(' ')
end
`)
	write(t, filepath.Join(dir, "manifests/site.pp"), "notify { 'told': message => fresh::told('by', $serverversion) }\n")
	s.tutti(t, "code", "deploy", "production", dir, "--engine", "puppet8")
	n := enrol(t, s, "one.test")
	compiles := func() {
		t.Helper()
		answer, err := n.catalog("production", nil)
		if err != nil || answer.status != http.StatusOK {
			t.Fatalf("%v: %d %s", err, answer.status, answer.body)
		}
		contains(t, answer.body, `"message":"by 8.`)
	}
	compiles()
	refused := s.try(t, "code", "deploy", "production", dir, "--engine", "default")
	if refused.code == 0 {
		t.Errorf("the deploy is taken:\n%s", refused.text())
	}
	contains(t, refused.text(), function+":3")
	preview := s.try(t, "preview", "create", "production", "--engine", "default")
	if preview.code != 4 {
		t.Errorf("the preview ends with %d", preview.code)
	}
	contains(t, preview.text(), "1 node: 1 do not compile", function+":3")
	compiles()
}

// The package of an engine goes from Puppet 7 to Puppet 8 under a running server: catalogs that Puppet 7 compiled stand no more, and no catalog is made by
// both.
func TestAnEngineIsUpgradedUnderAServer(t *testing.T) {
	begin(t, 40)
	interpreter, err := exec.LookPath("ruby")
	if err != nil {
		t.Fatal(err)
	}
	upgraded, err := os.ReadFile(puppet8Engine(t))
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	ruby := filepath.Join(place, "bin", "ruby")
	becomes := func(text string) {
		t.Helper()
		programtest.Write(t, ruby+".new", text)
		if err := errors.Join(os.Chmod(ruby+".new", 0o755), os.Rename(ruby+".new", ruby)); err != nil {
			t.Fatal(err)
		}
	}
	becomes("#!/bin/sh\nexec " + interpreter + " \"$@\"\n")
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--reuse-check", "0", "--engines", "one:"+ruby, "--engine", "one")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), "notify { 'by': message => \"${serverversion} ${inline_template('<%= Puppet.version %>')}\" }\n")
	s.tutti(t, "code", "deploy", "production", dir)
	nodes := []*node{enrol(t, s, "first.test"), enrol(t, s, "second.test")}
	said := func(n *node) string {
		t.Helper()
		answer, err := n.catalog("production", nil)
		if err != nil || answer.status != http.StatusOK {
			t.Fatalf("%v: %d %s", err, answer.status, answer.body)
		}
		by := regexp.MustCompile(`"message":"([0-9.]+) ([0-9.]+)"`).FindStringSubmatch(answer.body)
		if by == nil || by[1] != by[2] {
			t.Fatalf("two Puppets made this catalog: %q\n%s", by, answer.body)
		}
		return by[1]
	}
	for _, n := range nodes {
		if by := said(n); !strings.HasPrefix(by, "7.") {
			t.Errorf("%s is compiled by %s before the upgrade", n.name, by)
		}
	}
	becomes("#!/bin/sh\necho 'ruby: error while loading shared libraries' >&2\nexit 127\n") // half of the package is there
	eventually(t, patience, "half a package is noticed", func() bool { return strings.Contains(s.tutti(t, "engine", "list"), "shared libraries") })
	if answer, err := nodes[0].catalog("production", map[string]any{"changed": "yes"}); err == nil && answer.status == http.StatusOK &&
		!strings.Contains(answer.body, `"message":"7.`) {
		t.Errorf("half a package compiles: %s", answer.body)
	}
	becomes(string(upgraded))
	eventually(t, patience, "the upgrade is noticed", func() bool {
		engines := decode[api.List[api.Engine]](t, s, "engine", "list").Items
		return strings.HasPrefix(engines[0].Puppet, "8.")
	})
	for _, n := range nodes {
		if by := said(n); !strings.HasPrefix(by, "8.") {
			t.Errorf("%s has a catalog of %s after the upgrade", n.name, by)
		}
	}
}
