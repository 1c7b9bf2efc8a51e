package facter_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/agent/facter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// stub is a puppet that is a shell script; its settings are the usual ones.
func stub(t *testing.T, script string) facter.Config {
	t.Helper()
	text := "#!/bin/sh\nif [ \"$1\" = agent ]; then printf 'certname = web-1\\nnoop = true\\nenvironment = test\\nfactpath = /f1:/f2\\n'; exit; fi\n" + script +
		"\n"
	path := programtest.Write(t, filepath.Join(t.TempDir(), "puppet"), text)
	return facter.Config{Puppet: func() (string, error) { return path, nil }}
}

func TestFactsAreThoseOfTheAgentsSettings(t *testing.T) {
	t.Parallel()
	f := facter.New(stub(t, `echo "a fact says hello"; echo; printf '{"name":"web-1","values":{"args":"%s"},"timestamp":"2026-03-01T12:00:00Z"}' "$*"`))
	facts, err := f.All(t.Context())
	want := `{"args":"facts find web-1 --terminus facter --render-as json --certname web-1 --environment test --noop --factpath /f1:/f2"}`
	if err != nil || string(facts.Values) != want || facts.Environment != "test" || facts.Timestamp.IsZero() {
		t.Errorf("%s, %v, want %s (%+v)", facts.Values, err, want, facts)
	}
	f = facter.New(stub(t, `printf '{"args":"%s"}' "$*"`))
	values, err := f.Some(t.Context(), []string{"os", "role"})
	want = `{"args":"facts show os role --show-legacy --render-as json --certname web-1 --environment test --noop --factpath /f1:/f2"}`
	if err != nil || string(values) != want {
		t.Errorf("%s, %v, want %s", values, err, want)
	}
	if values, err := f.Some(t.Context(), nil); err != nil || string(values) != "{}" {
		t.Errorf("no facts: %s, %v", values, err)
	}
}

func TestProgramsThatFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, want string
		change       func(*facter.Config)
	}{
		"it fails":     {script: "echo one >&2; echo the last word >&2; exit 3", want: "exit status 3: the last word"},
		"in red":       {script: `printf '\033[1;31mError: the last word\033[0m\n' >&2; exit 1`, want: "exit status 1: Error: the last word"},
		"no facts":     {script: "echo nothing", want: "prints no facts"},
		"half of them": {script: `printf '{"name":"web-1","values":{"a":'`, want: "cut off"},
		"too much": {
			script: "while :; do echo 12345678901234567890; done", want: "more than 1000 bytes", change: func(c *facter.Config) { c.MaxBytes = 1000 },
		},
		"a hanging child": {script: "sleep 1000 & wait", want: "took longer than", change: func(c *facter.Config) { c.Timeout = 200 * time.Millisecond }},
		"no puppet": {want: "not installed", change: func(c *facter.Config) {
			c.Puppet = func() (string, error) { return "", fault.New(fault.Unavailable, "it is not installed") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := stub(t, c.script)
			if c.change != nil {
				c.change(&config)
			}
			if _, err := facter.New(config).All(t.Context()); fault.Of(err) != fault.Unavailable || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want Unavailable with %q", err, c.want)
			}
		})
	}
}

func TestAnAgentThatEndsDoesNotWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := facter.New(stub(t, "sleep 1000")).All(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
}
