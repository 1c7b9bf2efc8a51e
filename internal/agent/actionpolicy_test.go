package agent

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// The action policies of a node see its facts, and the classes that the real Puppet writes.
func TestActionPoliciesKnowTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	puppet := programtest.Puppet(t, dir, "--basemodulepath", filepath.Join(dir, "modules"))
	policies := filepath.Join(dir, "policies")
	must(t, os.Mkdir(policies, 0o700))
	for name, text := range map[string]string{
		"disk.policy":  "allow\tops\t*\t*\trole::web\nallow\t*\tstatus\tos.family=Debian\t*\ndeny\t*\twipe\trole=db\t*\nallow\t*\twipe\t*\t*\n",
		"fan.policy":   "policy default allow\nallow\n",
		"groups":       "ops tutti=ana\n",
		"disk.policy~": "nonsense",
	} {
		must(t, os.WriteFile(filepath.Join(policies, name), []byte(text), 0o600))
	}
	d := &daemon{Config: Config{Puppet: puppet, Data: dir, ActionPolicies: policies}, log: discard, facts: &submitter{}}
	rules, err := d.newRules(t.Context())
	must(t, err)
	allow := func(caller, module, action string) string {
		err := orders.Policy{Rules: rules}.Allow(orders.Order{Caller: caller, Module: module, Action: action}, "")
		return strings.ReplaceAll(fault.Detail(err), policies, "DIR")
	}
	check := func(caller, module, action, want string) {
		t.Helper()
		if got := allow(caller, module, action); got != want {
			t.Errorf("%s %s %s: got %q, want %q", caller, module, action, got, want)
		}
	}
	check("tutti=ana", "disk", "wipe",
		"refused by this node's policy: DIR/disk.policy line 3 may deny wipe to tutti=ana: the node's facts or classes are not known")
	check("tutti=bob", "disk", "status", "refused by this node's policy: no line of DIR/disk.policy allows status to tutti=bob")
	check("tutti=bob", "fan", "on", "refused by this node's policy: everything in fan is denied until its policy is mended: DIR/fan.policy line 2: a row must be allow or deny, callers, actions, facts and classes, separated by tabs")
	check("tutti=bob", "lamp", "on", "")

	d.facts.kept.Values = json.RawMessage(`{"os":{"family":"Debian"},"role":"web"}`)
	check("tutti=bob", "disk", "status", "")
	check("tutti=bob", "disk", "wipe", "")
	check("tutti=ana", "disk", "format", "refused by this node's policy: no line of DIR/disk.policy allows format to tutti=ana")
	out, err := exec.CommandContext(t.Context(), puppet, "apply", "--write-catalog-summary", "-e", "class role::web {} include role::web").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check("tutti=ana", "disk", "format", "")
	check("tutti=bob", "disk", "format", "refused by this node's policy: no line of DIR/disk.policy allows format to tutti=bob")
	d.facts.kept.Values = json.RawMessage(`{"os":{"family":"Debian"},"role":"db"}`)
	check("tutti=bob", "disk", "wipe", "refused by this node's policy: DIR/disk.policy line 3 denies wipe to tutti=bob")

	must(t, os.WriteFile(filepath.Join(policies, "deny.policy"), []byte("policy default allow\ndeny\t*\t*\t*\tzone::closed\n"), 0o600))
	rules, err = d.newRules(t.Context())
	must(t, err)
	check("tutti=bob", "deny", "x", "")
	settings, _ := d.asker().Last()
	must(t, os.WriteFile(settings["classfile"], []byte(strings.Repeat("a\n", maxClasses/2)+"zone::closed\n"), 0o600)) // more than is read
	check("tutti=bob", "deny", "x", "refused by this node's policy: DIR/deny.policy line 2 may deny x to tutti=bob: the node's facts or classes are not known")
}

func TestDoctorOnActionPolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := t.TempDir()
	must(t, os.WriteFile(filepath.Join(broken, "x.policy"), []byte("allow"), 0o600))
	for path, want := range map[string]string{
		"": "", dir: "ok " + dir, filepath.Join(dir, "none"): "broken action_policies " + dir + "/none cannot be read: no such file or directory",
		broken: "broken action policies deny everything until they are mended: " + broken + "/x.policy line 1",
	} {
		got := ""
		for _, f := range (Doctor{Config: Config{ActionPolicies: path}}).actionPolicies() {
			got = string(f.State) + " " + f.Found
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	c := &daemon{Config: Config{ActionPolicies: filepath.Join(dir, "none")}, log: discard}
	if _, err := c.newRules(t.Context()); fault.Of(err) != fault.Invalid {
		t.Errorf("an agent starts without the policies that it was told of: %v", err)
	}
}
