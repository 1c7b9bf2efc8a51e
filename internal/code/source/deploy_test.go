package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestDeploysOfAnEnvironmentAreFolded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Hold, w.repo.Began = make(chan struct{}), make(chan string, 10)
	w.repo.Push("production", site("# 1"))
	w.add(source.Source{})
	<-w.repo.Began // the first one runs
	ids := map[int64]bool{}
	for range 20 {
		asked, err := w.service.Deploy(t.Context(), []fleet.Environment{"production"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		ids[asked[0].ID] = true
	}
	w.same(1, len(ids))
	last := w.repo.Push("production", site("# 2"))
	w.repo.Hold <- struct{}{}
	w.repo.Hold <- struct{}{}
	w.settle()
	w.same(2, len(w.deployed()))
	w.same(last, w.branch("production").Commit)
	w.same("ann", w.branch("production").By)
}

// Whoever waits for a deploy is told how that one ended, although the next one is queued by then.
func TestTheNextDeployDoesNotHideHowOneEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Hold, w.repo.Began = make(chan struct{}), make(chan string, 10)
	w.repo.Push("production", site("# 1"))
	w.deployer.Refuse(fault.New(fault.Conflict, "the code has 1 mistake"))
	w.add(source.Source{})
	<-w.repo.Began // the first one runs
	first := w.branch("production").ID
	next, err := w.service.Deploy(t.Context(), []fleet.Environment{"production"}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	w.repo.Hold <- struct{}{}
	<-w.repo.Began // the first one has ended, and the next one runs
	ended, err := w.service.Wait(t.Context(), map[fleet.Environment]int64{"production": first})
	if err != nil || len(ended) != 1 || ended[0].ID != first || ended[0].State != source.Failed || !strings.Contains(ended[0].Error, "1 mistake") {
		t.Errorf("the first one: %+v, %v", ended, err)
	}
	if err := w.service.Remove(t.Context(), "control"); err != nil {
		t.Fatal(err)
	}
	ended, err = w.service.Wait(t.Context(), map[fleet.Environment]int64{"production": next[0].ID})
	if err != nil || len(ended) != 1 || ended[0].State != source.Failed || !strings.Contains(ended[0].Error, "removed") {
		t.Errorf("the next one, whose source was removed: %+v, %v", ended, err)
	}
}

func TestWhatFailsIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		harm  func(w *world)
		says  string
		retry bool
	}{
		"a link that leads out": {map[string]string{"manifests/site.pp": "", "modules/x": "-> /etc"}, nil, "modules/x leads to /etc", false},
		"a module path that leads out": {
			map[string]string{"environment.conf": "modulepath = /etc:modules\n"}, nil, `the modulepath entry "/etc" leads out of the repository`, false,
		},
		"a relative one":            {map[string]string{"environment.conf": "modulepath = ../../../../../../../../etc\n"}, nil, "leads out of the repository", false},
		"a linked environment.conf": {map[string]string{"environment.conf": "-> /etc/passwd"}, nil, "environment.conf is not a file", false},
		"no control repository":     {map[string]string{"README": ""}, nil, "no control repository", false},
		"mistakes":                  {site("}"), func(w *world) { w.deployer.Refuse(fault.New(fault.Conflict, "the code has 1 mistake")) }, "1 mistake", false},
		"a Puppetfile": {site(""), func(w *world) {
			w.modules = func(string) error { return fault.New(fault.Unavailable, "the forge does not answer") }
		}, "the forge does not answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.harm != nil {
				c.harm(w)
			}
			w.repo.Push("production", c.files)
			w.add(source.Source{})
			w.look()
			b := w.branch("production")
			if b.State != source.Failed || !strings.Contains(b.Error, c.says) || b.Retry != c.retry || strings.Contains(b.Error, "tree-") {
				t.Errorf("%+v", b)
			}
			if again := w.look(); len(again.Deploys) > 0 != c.retry {
				t.Errorf("it was tried again: %v", again.Deploys)
			}
			asked, err := w.service.Deploy(t.Context(), []fleet.Environment{"production"}, "ann")
			if err != nil || len(asked) != 1 {
				t.Errorf("asked again: %v, %v", asked, err)
			}
		})
	}
}

func TestModulesBecomePartOfTheVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.modules = func(dir string) error {
		module := filepath.Join(dir, "modules/motd/manifests")
		return errors.Join(os.MkdirAll(module, 0o750), os.WriteFile(filepath.Join(module, "init.pp"), []byte("class motd {}"), 0o600))
	}
	w.repo.Push("production", map[string]string{"Puppetfile": "mod 'example/motd'"})
	w.add(source.Source{})
	w.look()
	files := w.deployer.Deployed()[0].Manifest.Files
	if len(files) != 2 || files[1].Path != "modules/motd/manifests/init.pp" {
		t.Errorf("the version has %v", files)
	}
}

// The Puppetfile is read again, without running it: a program that ended well may have put the modules elsewhere, or nowhere.
func TestModulesThatDidNotComeRefuseTheDeploy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.modules = func(string) error { return nil }
	w.repo.Push("production", map[string]string{"manifests/site.pp": "", "Puppetfile": "moduledir '../elsewhere'\nmod 'example/motd'\nmod 'example/ntp'"})
	w.add(source.Source{})
	if b := w.branch("production"); b.State != source.Failed || b.Retry || !strings.Contains(b.Error, "example/motd, example/ntp") {
		t.Errorf("%+v", b)
	}
	w.same(0, len(w.deployed()))
	// The way out that the error names is taken, although no branch changed.
	s := source.Source{Name: "control", NoModules: true, Secrets: source.Secrets{URL: "user:pw@git.example/control"}}
	if _, err := w.service.Add(t.Context(), s, true); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.same(source.Complete, w.branch("production").State)
	if _, err := w.service.Add(t.Context(), s, true); err != nil { // the same again changes nothing
		t.Fatal(err)
	}
	w.look()
	w.same(1, len(w.deployed()))
}
