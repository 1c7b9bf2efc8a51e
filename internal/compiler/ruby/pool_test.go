package ruby

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

func TestCompileServesWhatAnAgentIsGiven(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("bench"): copyTree(t, "testdata/bench")})
	o := order(t, "production", "bench", "small-1.example.org")
	outcome, err := pool.Compile(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c := parse(t, outcome.Catalog)
	if c.Name != string(o.Node) || c.Environment != "production" || c.Format != 2 || len(c.UUID) != 36 {
		t.Errorf("catalog of %s in %s, format %d, uuid %q", c.Name, c.Environment, c.Format, c.UUID)
	}
	if c.Version != string(o.Version) || c.CodeID != string(o.Version) {
		t.Errorf("version %q, code_id %q, want %q", c.Version, c.CodeID, o.Version)
	}
	if len(c.Resources) != 45 {
		t.Errorf("%d resources, want 45", len(c.Resources))
	}
	if got, want := c.find("File[/etc/motd]").File, "/etc/puppetlabs/code/environments/production/modules/baseline/manifests/init.pp"; got != want {
		t.Errorf("file is %q, want %q", got, want)
	}
	if outcome.Cost.CPU <= 0 || outcome.Cost.PeakBytes < 10<<20 || outcome.Cost.Wall <= 0 {
		t.Errorf("cost is %+v", outcome.Cost)
	}
	second := mustCompile(t, pool, o)
	if second.UUID == c.UUID {
		t.Error("two catalogs have the same uuid")
	}
}

// A process that is killed before it can say which Puppet it has says nothing of Puppet: without
// a version every stored catalog would be another compiler's.
func TestAPoolAsksAgainForTheVersionOfItsCompiler(t *testing.T) {
	t.Parallel()
	interpreter, err := Config{}.interpreter()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ruby := filepath.Join(dir, "ruby")
	programtest.Write(t, ruby, "#!/bin/sh\ncase \"$*\" in *puppet/version*) echo asked >>"+dir+"/asked; test $(wc -l <"+dir+"/asked) -gt 2 || kill -9 $$;; esac\n"+
		"exec "+interpreter+" \"$@\"\n")
	code := tree(t, withConf(map[string]string{"manifests/site.pp": "notify { 'x': }\n"}))
	pool := running(t, Config{Workers: 1, Ruby: ruby, NoJIT: true}, directories{version("one"): code})
	mustCompile(t, pool, order(t, "production", "one", "a.example.org"))
	if got := pool.Engine(t.Context(), "", ""); !strings.HasPrefix(got, "puppet ") {
		t.Errorf("the compiler is %q", got)
	}
}

var _ compile.Compiler = (*Pool)(nil)
