package ruby

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// gemWith writes a gem with a C extension into a directory of gems: built for some Rubies, as `gem install` leaves it, which may be none.
func gemWith(t *testing.T, dir, version string, builtFor ...string) {
	t.Helper()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "specifications", "shout-"+version+".gemspec"),
		"Gem::Specification.new { |s| s.name = 'shout'; s.version = '"+version+
			"'; s.summary = 'it shouts'; s.authors = ['ann']; s.extensions = ['ext/extconf.rb'] }\n")
	for _, ruby := range builtFor {
		built := filepath.Join(dir, "extensions", rubySays(t, "Gem::Platform.local"), ruby, "shout-"+version)
		write(filepath.Join(built, "gem.build_complete"), "")
		write(filepath.Join(built, "shout.so"), "machine code of another Ruby")
	}
}

// rubySays is what this machine's Ruby makes of an expression.
func rubySays(t *testing.T, expression string) string {
	t.Helper()
	interpreter, err := Config{}.interpreter()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), interpreter, "-e", "print("+expression+")").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A gem in an engine's directories whose C extension is another Ruby's is named, with that Ruby and the way out; what this Ruby can load is no trouble.
func TestAGemForAnotherRubyIsNamed(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	interpreter, err := Config{}.interpreter()
	if err != nil {
		t.Fatal(err)
	}
	own, version := rubySays(t, "Gem.extension_api_version"), rubySays(t, "RUBY_VERSION")
	for _, c := range []struct {
		name string
		gems func(dir string)
		want string
	}{
		{
			"another Ruby's", func(dir string) { gemWith(t, dir, "1.0.0", "2.5.0") },
			"the C extension of the gem shout 1.0.0 in DIR is built for Ruby 2.5.0, and " + interpreter + " is Ruby " + version +
				"; install the gem with this Ruby: " + interpreter +
				" -S gem install --install-dir DIR shout -v 1.0.0, or name the Ruby that it is built for in the setting engines",
		},
		{"two others'", func(dir string) { gemWith(t, dir, "1.0.0", "2.5.0", "2.7.0") }, "is built for Ruby 2.5.0 and 2.7.0, and"},
		{"nobody's", func(dir string) { gemWith(t, dir, "1.0.0") }, "the gem shout 1.0.0 in DIR is not built, and"},
		{"two versions, both another's", func(dir string) { gemWith(t, dir, "1.0.0", "2.5.0"); gemWith(t, dir, "1.1.0", "2.5.0") }, "(the same is true of shout 1."},
		{"this one's, too", func(dir string) { gemWith(t, dir, "1.0.0", "2.5.0", own) }, ""},
		{"another version is this one's", func(dir string) { gemWith(t, dir, "1.0.0", "2.5.0"); gemWith(t, dir, "1.1.0", own) }, ""},
		{"none", func(string) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.gems(dir)
			standing := Examine(t.Context(), Engine{Name: "own", Ruby: interpreter, Gems: []string{dir}}, true)
			if c.want == "" {
				if standing.Trouble != nil || standing.Puppet == "" {
					t.Errorf("it cannot be used: %+v", standing)
				}
				return
			}
			if detail := fault.Detail(standing.Trouble); fault.Of(standing.Trouble) != fault.Unavailable ||
				!strings.Contains(detail, strings.ReplaceAll(c.want, "DIR", dir)) {
				t.Errorf("it says %q (%v), want %q", detail, standing.Trouble, c.want)
			}
		})
	}
}

// Such an engine compiles nothing: there is no catalog without what the gem gives.
func TestAnEngineWithAGemForAnotherRubyCompilesNothing(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	interpreter, err := Config{}.interpreter()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gemWith(t, dir, "1.0.0", "2.5.0")
	e := enginesOf(t, []Engine{{Name: "own", Ruby: interpreter}, {Name: "foreign", Ruby: interpreter, Gems: []string{dir}}},
		directories{version("a"): tree(t, map[string]string{"manifests/site.pp": tellsVersion})}, func(fleet.Digest) string { return "foreign" })
	_, err = e.Compile(t.Context(), order(t, "production", "a", "n.example.org"))
	if fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "the C extension of the gem shout 1.0.0 in "+dir) {
		t.Errorf("it compiles, or says something else: %v", err)
	}
	if err := e.Check(t.Context(), "foreign"); fault.Of(err) != fault.Unavailable {
		t.Errorf("a deploy for it is not refused: %v", err)
	}
}
