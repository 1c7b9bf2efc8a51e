package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What systemd 252 prints.
func TestParseShow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		want    State
		unknown bool
	}{
		"runs": {
			text: "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n", want: State{"running", "enabled", "active (running)", "systemd"},
		},
		"other order": {
			text: "ActiveState=inactive\nUnitFileState=disabled\nLoadState=loaded\nSubState=dead\n", want: State{"stopped", "disabled", "inactive (dead)", "systemd"},
		},
		"failed": {
			text: "LoadState=loaded\nActiveState=failed\nSubState=failed\nUnitFileState=enabled\n", want: State{"stopped", "enabled", "failed (failed)", "systemd"},
		},
		"starts": {
			text: "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nUnitFileState=static\n", want: State{
				"stopped", "static", "activating (auto-restart)", "systemd",
			},
		},
		"reloads": {
			text: "LoadState=loaded\nActiveState=reloading\nSubState=reload\nUnitFileState=enabled\n", want: State{
				"running", "enabled", "reloading (reload)", "systemd",
			},
		},
		"masked": {
			text: "LoadState=masked\nActiveState=inactive\nSubState=dead\nUnitFileState=masked\n", want: State{"stopped", "masked", "inactive (dead)", "systemd"},
		},
		"generated": {
			text: "LoadState=loaded\nActiveState=active\nSubState=exited\nUnitFileState=generated\n", want: State{"running", "generated", "active (exited)", "systemd"},
		},
		"unknown": {text: "LoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n", unknown: true},
	} {
		got, err := parseShow(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || errors.Is(err, errUnknown) != c.unknown || !c.unknown && err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := parseShow("Failed to connect to bus"); err == nil || errors.Is(err, errUnknown) {
		t.Errorf("no properties: %v", err)
	}
}

// What Puppet 7.23 prints.
func TestParseResource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		want    State
		unknown bool
	}{
		"runs": {
			text: "---\nservice:\n  x:\n    ensure: running\n    enable: 'true'\n    provider: openrc\n", want: State{"running", "enabled", "running", "openrc"},
		},
		"changed": {
			text: "Notice: /Service[x]/ensure: ensure changed 'running' to 'stopped'\n" +
				"---\nservice:\n  x:\n    ensure: stopped\n    enable: 'false'\n    provider: launchd\n",
			want: State{"stopped", "disabled", "stopped", "launchd"},
		},
		"paused": {
			text: "---\nservice:\n  x:\n    ensure: paused\n    enable: manual\n    provider: windows\n", want: State{"stopped", "manual", "paused", "windows"},
		},
		"no script": {text: "---\nservice:\n  x:\n    ensure: stopped\n    enable: 'false'\n    provider: debian\n", unknown: true},
		"another":   {text: "---\nservice:\n  y:\n    ensure: running\n", unknown: true},
	} {
		got, err := parseResource("x", c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || errors.Is(err, errUnknown) != c.unknown || !c.unknown && err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := parseResource("x", "Error: Could not run: no such type"); err == nil || errors.Is(err, errUnknown) {
		t.Errorf("an error: %v", err)
	}
}

func TestUnitOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"nginx": "nginx.service", "php7.4-fpm": "php7.4-fpm.service", "getty@tty1": "getty@tty1.service", "42": "42.service", "ssh.socket": "ssh.socket",
		"a.service": "a.service",
	} {
		if got := unitOf(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func FuzzParseShow(f *testing.F) {
	f.Add("LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseShow(text)
		if err == nil && s.Status != running && s.Status != stopped {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func FuzzParseResource(f *testing.F) {
	f.Add("---\nservice:\n  x:\n    ensure: running\n    enable: 'true'\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseResource("x", text)
		if err == nil && (s.Status != running && s.Status != stopped || strings.Contains(s.Status, "\n")) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}
