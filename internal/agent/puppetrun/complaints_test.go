package puppetrun

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// What Puppet prints on standard error of a run that fails is in its results, and the cause in their error.
func TestComplaints(t *testing.T) {
	t.Parallel()
	const noise, cause = "Error: Facter: no such file\n", "Error: The certificate for 'CN=web-1' does not match its private key"
	for name, c := range map[string]struct{ body, errorHas, stderr string }{
		"no report": {
			`printf 'Info: nothing\n'; printf '` + strings.TrimSpace(noise) + `\n\033[1;31m%s\033[0m\nWarning: it ends\n' "` + cause + `" >&2; exit 1`,
			"; Puppet says: The certificate for 'CN=web-1' does not match its private key", noise + cause + "\nWarning: it ends\n",
		},
		"with a report": {`echo "` + cause + `" >&2; report; exit 1`, "exit code 1; Puppet says: The certificate", cause + "\n"},
		"all is well":   {`echo "Error: of no importance" >&2; report`, "", ""},
		"said twice":    {`echo "` + cause + `" >&2; echo "` + cause + `" >&2; exit 1`, "private key", cause + "\n" + cause + "\n"},
		"silent":        {"exit 1", "left no report", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, c.body)
			results, _, _ := s.run(t.Context())
			if results.Stderr != c.stderr {
				t.Errorf("stderr %q, want %q", results.Stderr, c.stderr)
			}
			if !strings.Contains(results.Error, c.errorHas) || (c.errorHas == "") != (results.Error == "") || strings.Count(results.Error, "private key") > 1 ||
				strings.Contains(results.Error, "Facter") {
				t.Errorf("error %q", results.Error)
			}
		})
	}
}

func TestComplaintsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStub(t, `i=0; while test $i -lt 3000; do echo "Error: number $i of many that say the same thing" >&2; i=$((i+1)); done; exit 1`)
	results, _, _ := s.run(t.Context())
	if n := len(results.Stderr); n > maxComplaints || n < maxComplaints/2 {
		t.Errorf("%d bytes are kept", n)
	}
	if !strings.HasPrefix(results.Stderr, "Error: number ") || !strings.HasSuffix(results.Stderr, "number 2999 of many that say the same thing\n") {
		t.Errorf("kept are %.80q ... %q", results.Stderr, results.Stderr[max(0, len(results.Stderr)-80):])
	}
	long := errorsIn("Error: " + strings.Repeat("ä", 2000) + "\n")
	if len(long) > maxErrorBytes+len("…") || !strings.HasSuffix(long, "ä…") {
		t.Errorf("%d bytes: %.40s", len(long), long)
	}
}

// Puppet may not even tell its settings.
func TestComplaintsOfSettings(t *testing.T) {
	t.Parallel()
	s := newStub(t, "report")
	s.write("puppet", "#!/bin/sh\necho 'Error: Could not parse puppet.conf' >&2\nexit 1\n")
	results, _, _ := s.run(t.Context())
	if results.ErrorType != pxp.NoLastRunReport || !strings.HasSuffix(results.Error, "Puppet says: Could not parse puppet.conf") {
		t.Errorf("%+v", results)
	}
}
