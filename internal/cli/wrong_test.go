package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// What is wrong on the command line is said before any server is asked.
func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"node lst":                       "did you mean list?",
		"help nods":                      "did you mean node?",
		"help node lst":                  "did you mean list?",
		"completion bsh":                 "did you mean bash or zsh?",
		"nods":                           "did you mean node?",
		"code deploy Prod-1 .":           `the environment "Prod-1"`,
		"ca token --lifetime 500ms":      "--lifetime is 500ms",
		"ca sign":                        "name at least one certificate",
		"ca sign --all web-1.test":       "give names or the flag, not both",
		"node list -o xml":               `cannot print "xml"; choose table, wide, json`,
		"code versions":                  "ENVIRONMENT is missing",
		"node list --sever x":            "no flag --sever; did you mean --server?",
		"command run uptime --detach":    "no flag --detach; did you mean --no-wait?",
		"node list --json":               "no flag --json; did you mean --output json?",
		"node list --detach":             "no flag --detach; see `tutti node list --help`",
		"server --compile-timeout never": "--compile-timeout",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			code := Run(t.Context(), strings.Fields(line), System{Out: &out, Err: &out, Env: []string{"TUTTI_DATA=" + t.TempDir()}})
			if code != exitUsage && code != exitFailed || !strings.Contains(out.String(), want) {
				t.Errorf("exit code %d, %q; want %q", code, &out, want)
			}
		})
	}
}

func TestCountedFiles(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 files", 1: "1 file", 297: "297 files"} {
		if got := fault.Count(n, "file"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
