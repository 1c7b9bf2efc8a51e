package code_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
)

// The tests here put the same questions to a Tree and to the real Puppet file
// server, which looks at the directory that the Tree was built from.

type question struct {
	Mount   string         `json:"mount"`
	Path    string         `json:"path"`
	Search  bool           `json:"search"`
	Options map[string]any `json:"options"`
}

type resource struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Parameters map[string]any `json:"parameters"`
}

type opts = map[string]any

var questions = []question{
	{Mount: "modules", Path: "web/motd"},
	{Mount: "modules", Path: "web/motd", Options: opts{"source_permissions": "use"}},
	{Mount: "modules", Path: "web/run.sh", Options: opts{"source_permissions": "use"}},
	{Mount: "modules", Path: "web/conf.d", Options: opts{"source_permissions": "use"}},
	{Mount: "modules", Path: "web/conf.d", Options: opts{"source_permissions": "use_when_creating", "links": "follow"}},
	{Mount: "modules", Path: "web/to_motd"},
	{Mount: "modules", Path: "web/to_motd", Options: opts{"links": "follow"}},
	{Mount: "modules", Path: "web/to_motd", Options: opts{"links": "manage", "source_permissions": "use", "checksum_type": "md5"}},
	{Mount: "modules", Path: "web/to_conf"},
	{Mount: "modules", Path: "web/to_conf/a.conf"},
	{Mount: "modules", Path: "web/dangling"},
	{Mount: "modules", Path: "web/nothing"},
	{Mount: "modules", Path: "nomodule/motd"},
	{Mount: "modules", Path: "Upper/x"},
	{Mount: "modules", Path: "web"},
	{Mount: "modules", Path: "web//conf.d///a.conf"},
	{Mount: "modules", Path: "web/with space+%20é.txt"},
	{Mount: "modules", Path: "base/base.txt"},
	{Mount: "modules", Path: "shadowed/which"},
	{Mount: "modules", Path: "linked/in_linked"},
	{Mount: "plugins", Path: "puppet/functions/hello.rb"},
	{Mount: "plugins", Path: ""},
	{Mount: "plugins", Path: "puppet/nothing.rb"},
	{Mount: "pluginfacts", Path: "fact.sh"},
	{Mount: "locales", Path: ""},
	{Mount: "tasks", Path: "web/restart.sh"},
	{Mount: "scripts", Path: "web/s.sh"},
	{Mount: "scripts", Path: "web"},
	{Mount: "nomount", Path: "x"},

	{Mount: "modules", Path: "web", Search: true, Options: opts{"recurse": true}},
	{Mount: "modules", Path: "web", Search: true, Options: opts{"recurse": "true", "links": "manage", "source_permissions": "use"}},
	{Mount: "modules", Path: "web/conf.d", Search: true, Options: opts{"recurse": "false"}},
	{Mount: "modules", Path: "web/conf.d", Search: true},
	{Mount: "modules", Path: "web/conf.d", Search: true, Options: opts{"recurse": true, "links": "follow"}},
	{Mount: "modules", Path: "web/to_conf", Search: true, Options: opts{"recurse": true, "links": "follow"}},
	{Mount: "modules", Path: "web/to_conf", Search: true, Options: opts{"recurse": true}},
	{Mount: "modules", Path: "web/motd", Search: true, Options: opts{"recurse": true}},
	{Mount: "modules", Path: "web/deep", Search: true, Options: opts{"recurse": true, "recurselimit": "1"}},
	{Mount: "modules", Path: "web/deep", Search: true, Options: opts{"recurse": true, "recurselimit": "2"}},
	{Mount: "modules", Path: "web/deep", Search: true, Options: opts{"recurse": true, "max_files": "-1"}},
	{Mount: "modules", Path: "web/deep", Search: true, Options: opts{"recurse": true, "max_files": "2"}},
	{Mount: "modules", Path: "web/deep", Search: true, Options: opts{"recurse": true, "max_files": "3"}},
	{Mount: "modules", Path: "web", Search: true, Options: opts{"recurse": true, "ignore": []string{"*.conf", "deep"}}},
	{Mount: "modules", Path: "web", Search: true, Options: opts{"recurse": true, "ignore": []string{".svn", "CVS", ".git", ".hg"}}},
	{Mount: "modules", Path: "web", Search: true, Options: opts{"recurse": true, "ignore": "*"}},
	{Mount: "modules", Path: "web", Search: true, Options: opts{"recurse": true, "ignore": []string{".*", "[ac].conf"}}},
	{Mount: "modules", Path: "web", Search: true, Options: opts{"recurse": true, "checksum_type": "none"}},
	{Mount: "modules", Path: "web/nothing", Search: true, Options: opts{"recurse": true}},
	{Mount: "modules", Path: "base", Search: true, Options: opts{"recurse": true}},
	{Mount: "plugins", Search: true, Options: opts{"recurse": "false"}},
	{Mount: "plugins", Search: true, Options: opts{"recurse": true}},
	{Mount: "plugins", Path: "puppet", Search: true, Options: opts{"recurse": true}},
	{Mount: "plugins", Search: true, Options: opts{"recurse": true, "links": "follow", "ignore": []string{"*.md"}}},
	{Mount: "pluginfacts", Search: true, Options: opts{"recurse": true, "source_permissions": "use"}},
	{Mount: "locales", Search: true, Options: opts{"recurse": true}},
	{Mount: "tasks", Path: "web", Search: true, Options: opts{"recurse": true}},
	{Mount: "scripts", Path: "web", Search: true, Options: opts{"recurse": true}},
}

func file(title string, parameters opts) resource { return resource{"File", title, parameters} }

var catalogs = map[string][]resource{
	"everything that is fine": {
		file("/plain", opts{"ensure": "file", "source": "puppet:///modules/web/motd"}),
		file("/slash", opts{"source": "puppet:///modules/web/conf.d/"}),
		file("/absent", opts{"ensure": "absent", "source": "puppet:///modules/web/motd"}),
		file("/content", opts{"content": "x"}),
		file("/http", opts{"source": "https://example.com/x"}),
		file("/mixed", opts{"source": []string{"puppet:///modules/web/motd", "/etc/motd"}}),
		file("/second", opts{"source": []string{"puppet:///modules/web/none", "puppet:///modules/web/run.sh"}, "source_permissions": "use"}),
		file("/checksum", opts{"source": "puppet:///modules/web/motd", "checksum": "md5"}),
		file("/lite", opts{"source": "puppet:///modules/web/big", "checksum": "sha256lite"}),
		file("/follow", opts{"source": "puppet:///modules/web/to_motd", "links": "follow"}),
		file("/manage", opts{"source": "puppet:///modules/web/to_motd", "links": "manage"}),
		file("/odd name <&>", opts{"source": "puppet:///modules/web/with space+%20é.txt"}),
		file("/tree", opts{"source": "puppet:///modules/web/conf.d", "recurse": true}),
		file("/tree2", opts{"source": "puppet:///modules/web/deep", "recurse": "true", "recurselimit": 1}),
		file("/tree3", opts{"source": "puppet:///modules/web/deep", "recurse": "remote", "ignore": []string{"b*"}}),
		file("/limit0", opts{"source": "puppet:///modules/web/deep", "recurse": true, "recurselimit": 0}),
		file("/first", opts{
			"source":  []string{"puppet:///modules/web/none", "puppet:///modules/web/deep", "puppet:///modules/web/conf.d"},
			"recurse": true,
		}),
		file("/all", opts{
			"source":  []string{"puppet:///modules/web/deep/", "puppet:///modules/web/conf.d"},
			"recurse": true, "sourceselect": "all",
		}),
		file("/none", opts{"source": "puppet:///modules/web/none", "recurse": true}),
		file("/norecurse", opts{"source": "puppet:///modules/web/deep", "recurse": false}),
		file("/task", opts{"source": "puppet:///tasks/web/restart.sh"}),
		{Type: "Notify", Title: "hi", Parameters: opts{"message": "puppet:///modules/web/motd"}},
	},
	"too many files":    {file("/x", opts{"source": "puppet:///modules/web/deep", "recurse": true, "max_files": 1})},
	"nothing to inline": {file("/x", opts{"ensure": "directory"})},
}

var patterns = [][2]string{
	{"*", "a"},
	{"*", ".a"},
	{".*", ".a"},
	{"?a", ".a"},
	{"[.]a", ".a"},
	{"\\.a", ".a"},
	{"*.rb", "x.rb"},
	{"*.rb", "x.rbx"},
	{"a*b*c", "a1b2b3c"},
	{"a*b*c", "a1b2b3"},
	{"[a-c]x", "bx"},
	{"[!a-c]x", "bx"},
	{"[^a-c]x", "dx"},
	{"[a", "a"},
	{"[a", "[a"},
	{"[]a]", "a"},
	{"[]a]", "]"},
	{"[a\\]b]", "]"},
	{"\\*", "*"},
	{"\\*", "a"},
	{"a\\", "a\\"},
	{"a\\", "a"},
	{"", ""},
	{"", "a"},
	{"?", "é"},
	{"??", "é"},
	{"[é-ü]", "ö"},
	{"*é", "aé"},
	{"**", "ab"},
	{"**/a", "a"},
	{"{a,b}", "a"},
	{"{a,b}", "{a,b}"},
	{"A", "a"},
	{"[a-]", "-"},
	{"[-a]", "-"},
	{"a?", "a."},
	{"*a", "b.a"},
	{"[!]a]", "b"},
	{"[!]", "]"},
	{"[]", "]"},
	{"a[", "a["},
	{"[z-a]", "b"},
	{"[a-a]", "a"},
}

func TestFileServerAnswersLikePuppet(t *testing.T) {
	t.Parallel()
	root, tree := sampleEnvironment(t)
	puppet := askPuppet(t, root, root+"/base", questions)
	for i, q := range questions {
		t.Run(fmt.Sprintf("%s/%s search=%v %v", q.Mount, q.Path, q.Search, q.Options), func(t *testing.T) {
			t.Parallel()
			got := askTree(t, tree, q)
			want := normal(t, root, puppet.Answers[i])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-puppet +tree):\n%s", diff)
			}
		})
	}
	names := sortedKeys(catalogs)
	for i, name := range names {
		t.Run("catalog with "+name, func(t *testing.T) {
			t.Parallel()
			compareInlined(t, root, tree, puppet.Catalogs[i])
		})
	}
	for i, p := range patterns {
		if got := code.Fnmatch(p[0], p[1]); got != puppet.Matches[i] {
			t.Errorf("fnmatch(%q, %q) = %v, Ruby says %v", p[0], p[1], got, puppet.Matches[i])
		}
	}
}

// debianModules is where Debian's puppet-module-* packages install.
const debianModules = "/usr/share/puppet/modules"

func TestRealModulesLikePuppet(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(debianModules + "/stdlib"); err != nil {
		t.Fatalf("%v\nthis test needs modules: apt-get install puppet-module-puppetlabs-stdlib puppet-module-puppetlabs-apache", err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := filepath.Join(root, "code/environments/production")
	writeFiles(t, env, map[string]string{"manifests/site.pp": ""})
	_, tree := newShelf().deploy(t, "production", env, code.BuildOptions{BaseModulePath: []string{debianModules}})
	var asked []question
	// Not locales: two modules have a config.yaml there, and which one Puppet gives is chance.
	for _, mount := range []string{"plugins", "pluginfacts"} {
		asked = append(asked,
			question{Mount: mount, Search: true, Options: opts{"recurse": "true", "ignore": []string{".svn", "CVS", ".git", ".hg", "*.pot"}}},
			question{Mount: mount, Search: true, Options: opts{"recurse": "true", "links": "follow", "source_permissions": "use"}})
	}
	puppet := askPuppet(t, root, debianModules, asked)
	for i, q := range asked {
		want, got := normal(t, root, puppet.Answers[i]), askTree(t, tree, q)
		forgetWhichDirectory(want)
		forgetWhichDirectory(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %v (-puppet +tree):\n%.2000s", q.Mount, q.Options, diff)
		}
	}
}

// forgetWhichDirectory: Puppet takes modules as the disk lists them, so which of
// many lib directories stands for all of them is chance.
func forgetWhichDirectory(answer any) {
	list, _ := answer.([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["type"] == "directory" {
			delete(m, "path")
		}
	}
}

func compareInlined(t *testing.T, root string, tree *code.Tree, puppet puppetCatalog) {
	t.Helper()
	got, err := code.Inline(t.Context(), tree, []byte(puppet.Before), []string{"unheard_of", "sha256", "md5"})
	var failed struct{ Error string }
	_ = json.Unmarshal(puppet.After, &failed)
	if failed.Error != "" {
		if err == nil {
			t.Errorf("Puppet says %q, we inlined", failed.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(normal(t, root, puppet.After), normal(t, root, got)); diff != "" {
		t.Errorf("catalog (-puppet +ours):\n%s", diff)
	}
}

// askTree answers as the HTTP API would: nil for what is not there, and the
// word error for what is refused.
func askTree(t *testing.T, tree *code.Tree, q question) any {
	t.Helper()
	o := code.SearchOptions{MetadataOptions: code.MetadataOptions{
		Links: str(q.Options["links"]), ChecksumType: str(q.Options["checksum_type"]),
		SourcePermissions: str(q.Options["source_permissions"]),
	}}
	o.Recurse = str(q.Options["recurse"]) == "true"
	_, _ = fmt.Sscan(str(q.Options["recurselimit"]), &o.RecurseLimit)
	_, _ = fmt.Sscan(str(q.Options["max_files"]), &o.MaxFiles)
	switch ignore := q.Options["ignore"].(type) {
	case string:
		o.Ignore = []string{ignore}
	case []string:
		o.Ignore = ignore
	}
	var answer any
	var err error
	if q.Search {
		answer, err = tree.Metadatas(t.Context(), q.Mount, q.Path, o)
	} else {
		answer, err = tree.Metadata(t.Context(), q.Mount, q.Path, o.MetadataOptions)
	}
	if err != nil {
		return map[fault.Kind]any{fault.NotFound: nil, fault.Invalid: "error"}[fault.Of(err)]
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return normal(t, "/nowhere", text)
}

func str(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// normal makes answers comparable: directories have no time, lists are in the
// order of their paths, and both sides lie in the same place.
func normal(t *testing.T, root string, text []byte) any {
	t.Helper()
	text = bytes.ReplaceAll(text, []byte(root+"/code"), []byte("/etc/puppetlabs/code"))
	for _, base := range []string{root + "/base", debianModules} {
		text = bytes.ReplaceAll(text, []byte(base), []byte("/etc/puppetlabs/code/environments/production/.base_modules/0"))
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return tidy(doc)
}

func tidy(doc any) any {
	switch v := doc.(type) {
	case []any:
		for i := range v {
			v[i] = tidy(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(relative(a), relative(b)) })
	case map[string]any:
		if _, failed := v["error"]; failed {
			return "error"
		}
		for key := range v {
			v[key] = tidy(v[key])
		}
		if v["type"] == "directory" {
			delete(v["checksum"].(map[string]any), "value")
		}
	}
	return doc
}

func relative(item any) string {
	if m, ok := item.(map[string]any); ok {
		return str(m["relative_path"]) + str(m["title"])
	}
	return str(item)
}

type puppetAnswers struct {
	Answers  []json.RawMessage
	Catalogs []puppetCatalog
	Matches  []bool
}

type puppetCatalog struct {
	Before string
	After  json.RawMessage
}

func askPuppet(t *testing.T, root, base string, questions []question) puppetAnswers {
	t.Helper()
	var lists [][]resource
	for _, name := range sortedKeys(catalogs) {
		lists = append(lists, catalogs[name])
	}
	ask, err := json.Marshal(map[string]any{
		"root": root, "basemodulepath": base, "cases": questions, "catalogs": lists, "fnmatch": patterns,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ruby", "-W0", "testdata/fileserver.rb")
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC")
	cmd.Stdin = bytes.NewReader(ask)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s\nthis test needs Ruby and Puppet: apt-get install puppet-agent", err, stderr.Bytes())
	}
	var answers puppetAnswers
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return answers
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// sampleEnvironment makes an environment in <root>/code/environments/production
// with base modules in <root>/base, and deploys it.
func sampleEnvironment(t *testing.T) (root string, tree *code.Tree) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := filepath.Join(root, "code/environments/production")
	writeFiles(t, env, map[string]string{
		"environment.conf":                           "modulepath = site:modules:$basemodulepath\n",
		"manifests/site.pp":                          "notice('x')\n",
		"modules/web/files/motd":                     "hello\n",
		"modules/web/files/empty":                    "",
		"modules/web/files/big":                      strings.Repeat("0123456789abcdef", 200),
		"modules/web/files/run.sh*":                  "#!/bin/sh\n",
		"modules/web/files/.hidden":                  "h",
		"modules/web/files/conf.d/a.conf":            "a",
		"modules/web/files/conf.d/b.conf":            "b",
		"modules/web/files/conf.d/c.conf":            "c",
		"modules/web/files/conf.d/.svn/x":            "s",
		"modules/web/files/conf.d-more/x":            "sorts before conf.d/",
		"modules/web/files/deep/b/c/d":               "deep",
		"modules/web/files/with space+%20é.txt":      "odd",
		"modules/web/files/to_motd@":                 "motd",
		"modules/web/files/to_conf@":                 "conf.d",
		"modules/web/files/dangling@":                "not/there",
		"modules/web/files/conf.d/up@":               "../motd",
		"modules/web/lib/puppet/functions/hello.rb":  "# hello",
		"modules/web/lib/puppet/both.rb":             "# web",
		"modules/web/lib/README.md":                  "read",
		"modules/web/facts.d/fact.sh*":               "#!/bin/sh\necho a=b\n",
		"modules/web/tasks/restart.sh*":              "#!/bin/sh\n",
		"modules/web/tasks/restart.json":             "{}",
		"modules/web/scripts/s.sh":                   "s",
		"modules/Upper/files/x":                      "not a module's name",
		"modules/shadowed/files/which":               "modules",
		"modules/linked@":                            "../hidden_away",
		"hidden_away/files/in_linked":                "l",
		"site/shadowed/files/which":                  "site",
		"site/shadowed/lib/puppet/both.rb":           "# site",
		"site/shadowed/lib/puppet/functions/site.rb": "# site",
	})
	writeFiles(t, filepath.Join(root, "base"), map[string]string{
		"base/files/base.txt":      "base",
		"base/lib/facter/base.rb":  "# base",
		"base/lib/puppet/both.rb":  "# base",
		"shadowed/files/which":     "base",
		"shadowed/files/only_base": "base",
	})
	_, tree = newShelf().deploy(t, "production", env, code.BuildOptions{BaseModulePath: []string{filepath.Join(root, "base")}})
	return root, tree
}

// writeFiles makes files below dir. A name that ends in * is executable, one
// that ends in @ a link to its content, one that ends in / an empty directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(dir, strings.TrimRight(name, "*@"))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch name[len(name)-1] {
		case '@':
			err = os.Symlink(content, full)
		case '*':
			err = os.WriteFile(full, []byte(content), 0o755)
		case '/':
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
