package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/release"
)

// Nobody takes an account from more than ten nodes alone: a policy denies the release; then it asks for an operator, who must
// not be the author. The release waits for a freeze to be removed, and for a policy that denies its second wave. The server is killed in
// each of these states.
func TestPoliciesStopReleases(t *testing.T) {
	begin(t, 90)
	c := newReleaseChaos(t)
	legacy := t.TempDir()
	write(t, filepath.Join(legacy, "manifests/site.pp"), "user { 'legacy': ensure => present }\n")
	if r := c.until(t, c.create(t, c.previewOf(t, legacy), api.ReleaseOptions{WaitOffline: 120})); r.State != "done" {
		t.Fatalf("the account is not there: %s: %s", r.State, r.Reason)
	}
	number := fmt.Sprint(c.preview(t, "two"))
	stays := []string{
		"policy", "set", "users-stay", "--when", `change.kind == "removed" and change.type == "User" and change.nodes > 10`, "--message", "people lose their account",
	}
	ask := []string{"release", "create", "--preview", number, "--wave", "2", "--wave", "rest", "--promote", "manual", "--wait-offline", "2m", "--yes", "--no-wait"}
	all := []string{"--targets", strings.Join(c.names, ",")}

	c.server.tutti(t, stays...)
	c.refused(t, "users-stay", "policy", "test", "--preview", number)
	c.refused(t, "rule users-stay denies it: people lose their account", append(ask, all...)...)
	if out := c.server.tutti(t, append(ask, "--dry-run", "--targets", strings.Join(c.names[:10], ","))...); strings.Contains(out, "users-stay") {
		t.Errorf("the policy denies what takes the account from ten nodes: %s", out)
	}

	c.server.tutti(t, append(stays, "--effect", "approve", "--role", "operator")...)
	now := time.Now().UTC()
	c.server.tutti(t, "policy", "freeze", "set", "move", "--from", now.Add(-time.Hour).Format("2006-01-02 15:04"),
		"--to", now.Add(24*time.Hour).Format("2006-01-02 15:04"), "--zone", "UTC", "--why", "the data centre moves")
	bob, frozen := c.operator(t, "bob"), true
	id := strings.TrimSpace(c.server.tutti(t, append(ask, all...)...))
	last := c.follow(t, id, func(r stands) {
		switch {
		case r.State == release.WaitingApproval:
			c.refused(t, "waits for the approval of operator", "release", "watch", id)
			if by := c.server.try(t, "release", "approve", id); by.code == 0 || !strings.Contains(by.text(), "nobody approves a release of their own") {
				t.Errorf("the author approves: %d %s", by.code, by.text())
			}
			if by := tuttiWith(t, bob, "release", "approve", id, "--why", "seen"); by.code != 0 {
				t.Fatalf("bob approves: %s", by.text())
			}
		case r.Hold == release.Frozen:
			if frozen {
				frozen = false
				c.refused(t, "the data centre moves", "release", "watch", id)
				c.server.tutti(t, "policy", "freeze", "remove", "move")
			}
		case r.Hold == release.ForPromoter:
			c.server.tutti(t, "policy", "set", "stop", "--when", "true", "--message", "somebody said so")
			c.try(t, "release", "promote", id)
		case r.Hold == release.ByPolicy:
			c.refused(t, "rule stop denies wave 2: somebody said so", "release", "watch", id)
			c.server.tutti(t, "policy", "remove", "stop")
			c.try(t, "release", "resume", id)
		}
	})
	c.isEnd(t, last, release.Done, release.Counts{release.Changed: releaseNodes})
	c.judge(t, id)
	for _, state := range []string{"release waiting_approval", "paused for freeze", "paused for policy"} {
		if c.kills[state] == 0 {
			t.Errorf("the server was never killed in the state %q:\n%s", state, c.kills.table())
		}
	}
}

// refused runs a command that has to end with exit code 5 and say why.
func (c *releaseChaos) refused(t *testing.T, why string, args ...string) {
	t.Helper()
	if r := c.server.try(t, args...); r.code != 5 || !strings.Contains(r.text(), why) {
		t.Errorf("tutti %s: exit code %d, want 5 with %q:\n%s", strings.Join(args, " "), r.code, why, r.text())
	}
}

// operator makes a user with the role operator, and returns what their commands are run with.
func (c *releaseChaos) operator(t *testing.T, name string) []string {
	t.Helper()
	env := slices.Concat(c.server.env, []string{"TUTTI_DATA=" + c.server.data, "HOME=" + t.TempDir()})
	for _, command := range []string{" user create " + name + " --role operator --password-stdin", " login " + name + " --password-stdin"} {
		if r := execute(t, env, patience, "sh", "-c", "echo 'correct horse battery' | "+binary+command); r.code != 0 {
			t.Fatalf("tutti%s: %s", command, r.text())
		}
	}
	return env
}
