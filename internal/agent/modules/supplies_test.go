package modules_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/action"
	agentmodules "github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// offered is contents that servers have; nil: none is there.
type offered struct {
	orders.Cache
	contents map[string]string // by digest
	fetched  []string
}

// Install implements orders.Cache.
func (o *offered) Install(_ context.Context, dir string, files map[string]pxp.FileSource) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text, there := o.contents[files[path].SHA256]
		if !there {
			return fault.New(fault.Unavailable, "no server gives %s", files[path].Filename)
		}
		o.fetched = append(o.fetched, files[path].URI.Path)
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o750)); err != nil {
			return err
		}
	}
	return nil
}

func (o *offered) module(name string, files map[string]string) action.Supplied {
	m := action.Supplied{Name: name, Module: "band"}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		digest := fleet.DigestOf([]byte(files[path]))
		o.contents[string(digest)] = files[path]
		m.Files = append(m.Files, action.SuppliedFile{Path: path, Digest: digest, Size: int64(len(files[path]))})
	}
	return m
}

func (n node) supplies() (*agentmodules.Supplies, *offered) {
	o := &offered{contents: map[string]string{}}
	return &agentmodules.Supplies{Config: n.config(), Cache: o, Source: func(d fleet.Digest) pxp.Source { return pxp.Source{Path: "/m/" + string(d)} }}, o
}

const quiet = `{"description":"plays","actions":[{"name":"play","input":{},"results":{}}]}`

func TestSuppliedModules(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s, o := n.supplies()
	own := "run-" + runtime.GOOS + "_" + runtime.GOARCH
	supply := action.Supply{Modules: []action.Supplied{
		o.module("band", map[string]string{"metadata.json": quiet, "run": "any", own: "this one", "lib/x": "x"}),
		o.module("bad", map[string]string{"metadata.json": `{"description":"x","actions":[]}`, "run": ""}),
		o.module("other", map[string]string{"metadata.json": quiet, "run-plan9_386": ""}),
		{Name: "refused", Module: "band", Problem: "it has 201 files"},
	}}
	// Without a server: what is not here is told so.
	loaded, problems, err := s.Load(t.Context(), supply, false)
	if len(loaded) != 0 || len(problems) != 4 || fault.Of(errors.Join(err)) == fault.Invalid || len(o.fetched) > 0 ||
		!strings.Contains(problems[0].Reason, "is not here; it is fetched when a server is there") {
		t.Errorf("%v, %v, %v, fetched %v", loaded, problems, err, o.fetched)
	}
	loaded, problems, err = s.Load(t.Context(), supply, true)
	if err != nil || len(loaded) != 1 || loaded[0].Name != "band" || loaded[0].Description.Provider != action.FromCode || len(o.fetched) != 8 {
		t.Fatalf("%v, %v, %v, fetched %v", loaded, problems, err, o.fetched)
	}
	for i, want := range []string{
		"from band/tutti/bad: its metadata has no actions", "from band/tutti/other: the folder has none of " + own, "from band/tutti/refused: it has 201 files",
	} {
		if !strings.HasPrefix(problems[i].Reason, want) {
			t.Errorf("%q, want %q", problems[i].Reason, want)
		}
	}
	play := func() (orders.Command, error) {
		return loaded[0].Actions["play"].Prepare(t.Context(), orders.Order{Params: []byte("{}")})
	}
	c, err := play()
	if err != nil || filepath.Base(c.Path) != own || strings.Join(c.Args, " ") != "play" {
		t.Errorf("%+v, %v", c, err)
	}

	// A file that is changed, or gone, or a link, is put right before anything runs; if that cannot be, nothing does.
	library := filepath.Join(filepath.Dir(c.Path), "lib", "x")
	for what, damage := range map[string]func() error{
		"changed": func() error { return os.WriteFile(library, []byte("y"), 0o600) },
		"gone":    func() error { return os.Remove(library) },
		"a link":  func() error { return errors.Join(os.Remove(library), os.Symlink(c.Path, library)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := play(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if text, err := os.ReadFile(library); string(text) != "x" || err != nil {
			t.Errorf("%s: %s, %v", what, text, err)
		}
	}
	if err := os.WriteFile(c.Path, []byte("that one"), 0o750); err != nil { // of the same size
		t.Fatal(err)
	}
	clear(o.contents)
	if _, err := play(); fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "its files cannot be fetched: no server gives band/lib/x") {
		t.Errorf("without a server: %v", err)
	}
}

// What does not belong to the node any more goes, unless it runs.
func TestFormerSuppliedModulesGo(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s, o := n.supplies()
	versions := func() (names []string) {
		found, err := filepath.Glob(filepath.Join(n.dir, "*", "*", "run"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, string(text))
		}
		slices.Sort(names)
		return names
	}
	of := func(texts ...string) (supply action.Supply) {
		for _, text := range texts {
			supply.Modules = append(supply.Modules, o.module(strings.Fields(text)[0], map[string]string{"metadata.json": quiet, "run": text}))
		}
		return supply
	}
	load := func(supply action.Supply) {
		t.Helper()
		if _, problems, err := s.Load(t.Context(), supply, true); err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
	}
	load(of("a 1", "b 1"))
	load(of("a 2"))
	if err := os.Mkdir(filepath.Join(n.dir, ".new-left"), 0o750); err != nil {
		t.Fatal(err)
	}
	write := filepath.Join(n.dir, "current.json")
	n.write(write, "{}", 0o600)
	for _, step := range []struct {
		busy string
		want []string
	}{{"a", []string{"a 1", "a 2"}}, {"", []string{"a 2"}}} {
		if err := s.Sweep(of("a 2"), func(module string) bool { return module == step.busy }); err != nil || !slices.Equal(versions(), step.want) {
			t.Errorf("%v, %v, want %v", versions(), err, step.want)
		}
	}
	if _, err := os.Stat(filepath.Join(n.dir, ".new-left")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what an agent left that was killed stays")
	}
	if _, err := os.Stat(write); err != nil {
		t.Error(err)
	}
}

// A folder with its metadata is a module of modules_dir, too.
func TestFolderInTheModulesDirectory(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write(filepath.Join(n.dir, "README"), "x", 0o600)
	dir := filepath.Join(n.dir, "band")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	n.write(filepath.Join(dir, "metadata.json"), quiet, 0o600)
	n.write(filepath.Join(dir, "run"), "#!/bin/sh\n", 0o600)
	if loaded, problems := n.load(); len(loaded) != 0 || !strings.Contains(problems, "band/run is not executable: chmod +x") {
		t.Errorf("%v, %s", loaded, problems)
	}
	if err := os.Chmod(filepath.Join(dir, "run"), 0o750); err != nil {
		t.Fatal(err)
	}
	if loaded, problems := n.load(); len(loaded) != 1 || loaded[0].Description.Provider != action.External || problems != "" {
		t.Errorf("%v, %s", loaded, problems)
	}
}

// A question that is being answered keeps the version whose program answers it, though the node has another one by then.
func TestAFormerModuleStaysWhileItAnswers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s, o := n.supplies()
	described := strings.Replace(quiet, `"name":"play",`, `"name":"play","read_only":true,`, 1)
	begun, goOn := filepath.Join(n.cfg, "begun"), filepath.Join(n.cfg, "go-on")
	script := "#!/bin/sh\ntouch " + begun + "\nwhile [ ! -e " + goOn + " ]; do sleep 0.01; done\ncat \"$(dirname \"$0\")/answer\"\n"
	first := action.Supply{Modules: []action.Supplied{o.module("band", map[string]string{"metadata.json": described, "run": script, "answer": `{"played":1}`})}}
	loaded, problems, err := s.Load(t.Context(), first, true)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	answered := make(chan string, 1)
	go func() {
		results, err := loaded[0].Actions["play"].Read(t.Context(), orders.Order{Transaction: "0d", Params: []byte("{}")})
		answered <- fmt.Sprint(string(results), err)
	}()
	n.appears(begun)
	sweep := func() {
		t.Helper()
		if err := s.Sweep(action.Supply{}, func(string) bool { return false }); err != nil {
			t.Error(err)
		}
	}
	sweep()
	n.write(goOn, "", 0o600)
	if got, want := <-answered, `{"played":1}<nil>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	sweep()
	if left, err := filepath.Glob(filepath.Join(n.dir, "*", "band")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
