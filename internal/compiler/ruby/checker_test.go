package ruby

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/fault"
)

// checked is a file and what is found in it: level:line, and a part of the message.
type checked struct {
	path string
	kind code.SourceKind
	text string
	want []string
}

// TestChecker has mistakes of each kind with their lines, and what must not be taken for one.
func TestChecker(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	noAnchor := "Unknown alias: gone"
	if exec.CommandContext(t.Context(), "ruby", "-rpsych", "-e", "Psych::AnchorNotDefined").Run() == nil { // since Psych 4.0.4
		noAnchor = "An alias referenced an unknown anchor: gone"
	}
	files := []checked{
		{"manifests/site.pp", code.PuppetSource, "node default { include m }\n$top = 1\n", nil},
		{"manifests/end.pp", code.PuppetSource, "node default {\n  notify { 'x': }\n", []string{"mistake:2 Syntax error at end of input"}},
		{"manifests/middle.pp", code.PuppetSource, "notify { 'x'\n  message => 'y' }\n", []string{"mistake:2 Syntax error at 'message'"}},
		{
			"modules/m/manifests/init.pp", code.PuppetSource, "class m {\n  $A = 1\n  file { 'x': owner => 'a', owner => 'b' }\n}\n",
			[]string{"mistake:2 Illegal variable name"},
		},
		{"modules/m/manifests/other.pp", code.PuppetSource, "class m::other { }\n\nclass wrong { }\n", []string{"mistake:3 Unacceptable location"}},
		{"modules/m/manifests/top.pp", code.PuppetSource, "class m::top { }\nnotify { 'x': }\n", []string{"mistake:2 This Resource Statement is unacceptable"}},
		{
			"modules/m/manifests/ok.pp", code.PuppetSource,
			"# Übung\nclass m::ok (Optional[String[1]] $x = undef) {\n  $y = @(\"E\":json)\n    {\"a\": 1}\n    | E\n}\n", nil,
		},
		{"modules/m/functions/f.pp", code.PuppetSource, "function m::f(Integer $x) >> Integer { $x + 1 }\n", nil},
		{"modules/m/types/port.pp", code.PuppetSource, "type M::Port = Integer[1, 65535]\n", nil},
		{"modules/m/manifests/empty.pp", code.PuppetSource, "", nil},
		{
			"modules/m/manifests/out.pp", code.PuppetSource,
			"class m::out {\n  $a = generate('/bin/date')\n  $b = file('/etc/motd', 'm/x')\n  $c = file('m/x')\n  $d = template(\"/x/${a}\")\n}\n",
			[]string{"outside:2 generate('/bin/date') runs a program", "outside:3 file('/etc/motd') reads a file outside"},
		},
		{"plans/ok.pp", code.PlanSource, "plan p(TargetSpec $nodes) {\n  apply($nodes) { notify { 'x': } }\n  return run_command('x', $nodes)\n}\n", nil},
		{"plans/bad.pp", code.PlanSource, "plan p(\n", []string{"mistake:1 Syntax error"}},
		{"modules/m/manifests/plan.pp", code.PuppetSource, "class m::plan { notify { 'plan': plan => 1 } }\n", nil}, // a word of plans alone
		{"modules/m/templates/a.epp", code.EPPSource, "<%- | String $x | -%>\nhello <%= $x %>\n", nil},
		{"modules/m/templates/b.epp", code.EPPSource, "hello\n<% if $x { %>\nx\n", []string{"mistake:3 Syntax error"}},
		{
			"modules/m/templates/a.erb", code.ERBSource,
			"<%# x -%>\n<% @list.each do |x| -%>\n<%= x %>\n<%- end -%>\n<%% not ruby %>\n% not ruby either\n<% A = 1; yield if false %>\n", nil,
		},
		{"modules/m/templates/b.erb", code.ERBSource, "fine\n\n<%= @x + %>\n", []string{"mistake:3 syntax error"}},
		{"modules/m/templates/c.erb", code.ERBSource, "fine\n<% if @x %>\n", []string{"mistake:2 syntax error"}},
		{"data/a.yaml", code.YAMLSource, "---\na: &x [1]\nb: *x\nc: :symbol\nd: |\n  text\n", nil},
		{"data/empty.yaml", code.YAMLSource, "", nil},
		{"data/b.yaml", code.YAMLSource, "a: 1\nb:\n  - x\n y: 2\nc: 3\n", []string{"mistake:4 did not find expected key"}},
		{"data/alias.yaml", code.YAMLSource, "a: 1\nb: 2\nc: *gone\n", []string{"mistake:3 " + noAnchor}},
		{"data/date.yaml", code.YAMLSource, "a: 1\nb: 2026-11-23\n", []string{"mistake:2 Tried to load unspecified class: Date"}},
		{"data/object.yaml", code.YAMLSource, "a: 1\nb: !ruby/object:Object {}\n", []string{"mistake:2 Tried to load unspecified class: Object"}},
		{"metadata.json", code.JSONSource, `{"name": "a-m"}`, nil},
		{"modules/m/metadata.json", code.JSONSource, "{\"a\": 1,\n \"b\": }\n", []string{"mistake:0 "}}, // its line is found by who asks
		{"environment.conf", code.ConfSource, "# x\nmodulepath = modules\n\nconfig_version = 'x.sh'\n", []string{"note:4 config_version is not run"}},
		{"static/environment.conf", code.ConfSource, "static_catalogs = false\n", []string{"note:1 static_catalogs stays on"}},
		{"usual/environment.conf", code.ConfSource, "static_catalogs = true\nenvironment_timeout = 0\n", nil},
		{"other/environment.conf", code.ConfSource, "modulepath = modules\nwhat is this\n", []string{"mistake:2 Could not match line"}},
	}
	got := map[string][]string{}
	in := codecheck.Input{ModulePath: []string{"modules"}, Manifest: "manifests", Open: func(_ context.Context, f code.Source) ([]byte, error) {
		return []byte(files[slices.IndexFunc(files, func(c checked) bool { return c.path == f.Path })].text), nil
	}}
	for _, f := range files {
		in.Files = append(in.Files, code.Source{Path: f.path, Kind: f.kind})
	}
	if err := NewChecker(Config{Keeper: keeper(t), Dir: t.TempDir()}).Parse(t.Context(), in, func(f codecheck.Finding) {
		got[f.File] = append(got[f.File], fmt.Sprintf("%s:%d %s", f.Level, f.Line, f.Message))
		if strings.Contains(f.Message, checkRoot) {
			t.Errorf("%s tells where the code was checked: %s", f.File, f.Message)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		found := got[f.path]
		same := len(found) == len(f.want)
		for i := 0; same && i < len(found); i++ {
			same = strings.HasPrefix(found[i], f.want[i])
		}
		if !same {
			t.Errorf("%s: %s", f.path, cmp.Diff(f.want, found))
		}
	}
}

// What is strict is a mistake or a warning as the settings say, or as Puppet does: 7 warns, 8 refuses.
func TestCheckerIsAsStrictAsCompilers(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	usual := codecheck.Warning
	if puppetEight(t) {
		usual = codecheck.Mistake
	}
	in := codecheck.Input{
		Files: []code.Source{{Path: "manifests/site.pp", Kind: code.PuppetSource}}, Manifest: "manifests",
		Open: func(context.Context, code.Source) ([]byte, error) {
			return []byte("$x = { 'a' => 1, 'a' => 2 }\n"), nil
		},
	}
	for strict, want := range map[string][]codecheck.Level{"": {usual}, "off": nil, "warning": {codecheck.Warning}, "error": {codecheck.Mistake}} {
		var got []codecheck.Level
		checker := NewChecker(Config{Keeper: keeper(t), Dir: t.TempDir(), Settings: Settings{Strict: strict}})
		if err := checker.Parse(t.Context(), in, func(f codecheck.Finding) { got = append(got, f.Level) }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("strict %q: found %q, want %q", strict, got, want)
		}
	}
}

// TestCheckerIsBounded holds that code which takes its parser too long ends the check, and that a check that broke off is none.
func TestCheckerIsBounded(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	in := codecheck.Input{
		Files: []code.Source{{Path: "a.pp", Kind: code.PuppetSource}},
		Open:  func(context.Context, code.Source) ([]byte, error) { return []byte("notify { 'x': }"), nil },
	}
	tell := func(f codecheck.Finding) { t.Errorf("it found %+v", f) }
	if err := NewChecker(Config{Keeper: keeper(t), Dir: t.TempDir(), Timeout: time.Millisecond}).Parse(t.Context(), in,
		tell); fault.Of(err) != fault.Unavailable || err == nil || !strings.Contains(err.Error(), "1ms") {
		t.Errorf("a check that takes too long: %v", err)
	}
	err := NewChecker(Config{Keeper: keeper(t), Dir: t.TempDir(), MemoryBytes: 1 - spaceOverMemory + 1<<20}).Parse(t.Context(), in, tell)
	if fault.Of(err) != fault.Unavailable || err == nil {
		t.Errorf("a check without memory: %v", err)
	}
	gone := errors.New("the blob is gone")
	in.Open = func(context.Context, code.Source) ([]byte, error) { return nil, gone }
	if err := NewChecker(Config{Keeper: keeper(t), Dir: t.TempDir()}).Parse(t.Context(), in, tell); !errors.Is(err, gone) {
		t.Errorf("a file that cannot be opened: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewChecker(Config{Keeper: keeper(t), Dir: t.TempDir()}).Parse(ctx, in, tell); err == nil {
		t.Error("a check that was given up went well")
	}
}
