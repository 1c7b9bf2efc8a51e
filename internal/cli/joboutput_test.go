package cli

import "testing"

// What Puppet wrote is not said again below the reason that has it.
func TestErrorsAreSaidOnce(t *testing.T) {
	t.Parallel()
	const stderr = "Error: No more routes to ca\nWarning: no cache\nError: No more routes to ca\nError: another\n"
	const routes, catalog = "; Puppet says: No more routes to ca", "Error: No cache; skipping run\nError: No cache\nError: Puppet\n"
	for _, c := range []struct{ text, above, want string }{
		{stderr, "errored: Puppet did not run" + routes, "Warning: no cache\nError: another\n"},
		{stderr, "errored: Puppet did not run" + routes + "; another", "Warning: no cache\n"},
		{stderr, "failed: exit code 1: No more routes to ca", stderr},
		{stderr, "succeeded", stderr},
		{stderr, "failed; Puppet says: No more routes to ca, and what a longer error has", stderr},
		{stderr, "failed; Puppet says: No more rou…", stderr},
		{catalog, "Puppet did not run; Puppet says: No cache; skipping run", "Error: No cache\nError: Puppet\n"},
		{"Error: Facter: x\n" + catalog, "Puppet did not run; Puppet says: No cache; skipping run; No cache; Puppet", "Error: Facter: x\n"},
	} {
		if got := unsaid(c.text, c.above); got != c.want {
			t.Errorf("%s: %q, want %q", c.above, got, c.want)
		}
	}
}

func TestOutputOfTasksIsShownAsItsMembers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"status":"running","n":7,"list":[1]}`: "list: [1]\nn: 7\nstatus: running\n", `{"_output":"plain\n"}`: "plain\n", "{}": "",
	} {
		if got, ok := membersOf(text); !ok || got != want {
			t.Errorf("%s: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "plain", "[1]", "null", `{"a":1} x`} {
		if got, ok := membersOf(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}
