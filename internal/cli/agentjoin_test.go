package cli

import (
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// The agent at its usual place shares its certificate with the machine's Puppet; another one only with a Puppet that is named.
func TestWhichPuppetSharesACertificate(t *testing.T) {
	dir := t.TempDir()
	there := programtest.Write(t, filepath.Join(dir, "puppet"), "#!/bin/sh\n")
	usual := agent.Default().Dir
	for name, c := range map[string]struct {
		path   string
		dir    string
		flags  joinFlags
		puppet string
		absent bool
		exit   int
	}{
		"usual":                       {dir, usual, joinFlags{}, there, false, 0},
		"not installed":               {"/nowhere", usual, joinFlags{}, "", true, 0},
		"not wanted":                  {dir, usual, joinFlags{noPuppet: true}, "", false, 0},
		"not installed, not wanted":   {"/nowhere", usual, joinFlags{noPuppet: true}, "", false, 0},
		"somebody's own agent":        {dir, dir, joinFlags{}, "", false, 0},
		"its Puppet is named":         {"/nowhere", dir, joinFlags{executable: there}, there, false, 0},
		"a name that is wrong":        {dir, dir, joinFlags{executable: there + "-no"}, "", false, exitUsage},
		"its certificate is wanted":   {"/nowhere", usual, joinFlags{puppet: true}, "", false, exitFailed},
		"its files are named instead": {dir, usual, joinFlags{puppet: true, ssldir: "/x"}, "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			puppet, absent, err := c.flags.neighbour(c.dir)
			if puppet != c.puppet || absent != c.absent || exitCode(err) != c.exit {
				t.Errorf("got %q, absent %v, %v", puppet, absent, err)
			}
		})
	}
}

func TestWordsForJoining(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"puppet shares the certificate, in /ssl; set in /p.conf: certname = a, server = b": sharedText(agent.Shared{
			SSLDir: "/ssl", Config: "/p.conf", Set: []string{"certname = a", "server = b"},
		}),
		"puppet had the certificate, and the agent takes it from /ssl": sharedText(agent.Shared{SSLDir: "/ssl", Taken: true}),
		"puppet gets the agent's certificate, in /ssl":                 sharedText(agent.Shared{SSLDir: "/ssl", Given: true}),
		"changed, 3 of 8 resources changed": firstRunText(agent.FirstRun{
			Status: "changed", Metrics: map[string]int{"total": 8, "changed": 3},
		}),
		"failed, 1 of 8 resources changed, 2 failed": firstRunText(agent.FirstRun{Status: "failed", Metrics: map[string]int{"total": 8, "changed": 1, "failed": 2}}),
		"unchanged, 0 of 8 resources changed":        firstRunText(agent.FirstRun{Status: "unchanged", Metrics: map[string]int{"total": 8}}),
		"Puppet was left alone, so no first run was made: an agent in a directory of its own shares only the Puppet that --puppet PATH names": joinFlags{}.withoutRun(),
		"Puppet was left alone, so no first run was made; join again without --no-puppet to share the certificate with it": joinFlags{
			noPuppet: true,
		}.withoutRun(),
		"failed: no report": firstRunText(agent.FirstRun{Status: "unknown", Error: "no report"}),
		"failed: the environment testing has no code yet: deploy some with `tutti code deploy testing DIR`": firstRunText(agent.FirstRun{
			Status: "failed", Error: "404", WithoutCode: "testing",
		}),
		"a has joined, but the environment testing has no code yet: deploy some with `tutti code deploy testing DIR`, then run `puppet agent -t` here": firstRunVerdict(
			agent.Joined{Name: "a", Run: &agent.FirstRun{Status: "failed", WithoutCode: "testing"}}).Error(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if firstRunVerdict(agent.Joined{}) != nil || firstRunVerdict(agent.Joined{Run: &agent.FirstRun{Status: "changed"}}) != nil {
		t.Error("a run that is well is an error")
	}
	if code := exitCode(firstRunVerdict(agent.Joined{Name: "a", Run: &agent.FirstRun{Status: "failed"}})); code != exitSomeFailed {
		t.Errorf("exit code %d", code)
	}
}
