package puppetrun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// asking is a run on a node that keeps Puppet's puppetenv.Settings.
func (s *stub) asking(kept string) pxp.PuppetResults {
	s.t.Helper()
	input := pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: []string{}})
	configuration := pxp.PuppetConfiguration{Puppet: filepath.Join(s.dir, "puppet"), Settings: kept}
	results, _, _ := s.order(s.t.Context(), string(pxp.Data(pxp.PuppetOrder{Input: input, Configuration: configuration})))
	return results
}

func (s *stub) asks() int {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "asks"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// Puppet is asked for its settings once, and again when what they come from has changed.
func TestSettingsAreKept(t *testing.T) {
	t.Parallel()
	s := newStub(t, "report")
	kept := filepath.Join(s.dir, "settings.json")
	touch := func(name string) {
		when := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(s.dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	wanted := 0
	for _, step := range []struct {
		name   string
		change func()
		asks   int
	}{
		{"at first", func() {}, 1},
		{"again", func() {}, 0},
		{"puppet.conf is new", func() { s.write("puppet.conf", "[agent]\n"); touch("puppet.conf") }, 1},
		{"and is as it was", func() {}, 0},
		{"puppet.conf has other settings", func() { s.write("puppet.conf", "[agent]\nnoop = true\n"); touch("puppet.conf") }, 1},
		{"another puppet", func() { touch("puppet") }, 1},
		{"what is kept is damaged", func() { s.write("settings.json", "{") }, 1},
		{"an answer to something else", func() { s.write("settings.json", `{"names": "x", "settings": {"lastrunreport": "/x"}}`) }, 1},
		{"an old answer", func() { s.age(kept) }, 1},
		{"puppet.conf has gone", func() { _ = os.Remove(filepath.Join(s.dir, "puppet.conf")) }, 1},
		{"puppet.conf is written while Puppet reads it", func() {
			s.write("puppet.conf", "")
			later := time.Now().Add(time.Hour)
			_ = os.Chtimes(filepath.Join(s.dir, "puppet.conf"), later, later)
		}, 1},
		{"so the answer is not kept", func() {}, 1},
	} {
		step.change()
		wanted += step.asks
		if results := s.asking(kept); !cmp.Equal(changed(), results) {
			t.Errorf("%s: results (-want +got):\n%s", step.name, cmp.Diff(changed(), results))
		}
		if got := s.asks(); got != wanted {
			t.Fatalf("%s: Puppet was asked %d times, want %d", step.name, got, wanted)
		}
	}
}

// age makes the answer that is kept older than answers are believed.
func (s *stub) age(kept string) {
	s.t.Helper()
	text, err := os.ReadFile(kept)
	if err != nil {
		s.t.Fatal(err)
	}
	before, after, _ := strings.Cut(string(text), `"at":"`)
	_, after, _ = strings.Cut(after, `"`)
	s.write("settings.json", before+`"at":"`+time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339)+`"`+after)
}

// A place where nothing can be kept keeps nobody from a run.
func TestSettingsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := newStub(t, "report")
	if results := s.asking(filepath.Join(s.dir, "no", "such", "directory")); !cmp.Equal(changed(), results) {
		t.Errorf("results (-want +got):\n%s", cmp.Diff(changed(), results))
	}
}

// A setting that is changed in puppet.conf counts in the next run: real Puppet says so of the same file.
func TestSettingsAreThoseOfPuppet(t *testing.T) {
	t.Parallel()
	installed, err := exec.LookPath("puppet")
	if err != nil {
		t.Fatal("no puppet here: make test-deps")
	}
	s := &stub{t: t, dir: t.TempDir()}
	s.write("puppet", fmt.Sprintf("#!/bin/sh\necho x >> %[1]s/asks\nexec %[2]s \"$@\" --confdir %[1]s --vardir %[1]s/var\n", s.dir, installed))
	if err := os.Chmod(filepath.Join(s.dir, "puppet"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &puppet{bin: filepath.Join(s.dir, "puppet"), errs: &ear{to: t.Output()}}
	p.Settings = filepath.Join(s.dir, "settings.json")
	for _, step := range []struct {
		conf, want string
		asks       int
	}{
		{"[agent]\nlastrunreport = /one\n", "/one", 1},
		{"", "/one", 1},
		{"[main]\nlastrunreport = /one\n[agent]\nlastrunreport = /two\n", "/two", 2},
	} {
		if step.conf != "" {
			s.write("puppet.conf", step.conf)
			when := time.Now().Add(-time.Duration(len(step.conf)) * time.Minute)
			if err := os.Chtimes(filepath.Join(s.dir, "puppet.conf"), when, when); err != nil {
				t.Fatal(err)
			}
		}
		found, err := p.asker().Settings(t.Context())
		if err != nil || found["lastrunreport"] != step.want || s.asks() != step.asks {
			t.Errorf("lastrunreport %q after %d starts, %v, want %q after %d", found["lastrunreport"], s.asks(), err, step.want, step.asks)
		}
	}
}
