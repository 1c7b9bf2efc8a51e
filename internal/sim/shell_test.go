package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestShell(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]effect{
		"hostname":                       {stdout: "web-1\n"},
		"echo a  b":                      {stdout: "a b\n"},
		"echo lost >> /tmp/file; exit 3": {stdout: "lost\n", exitCode: 3},
		"false":                          {exitCode: 1},
		"false; true":                    {},
		"exit 300; echo never":           {exitCode: 44},
		"sleep 1.5\nsleep 1":             {takes: 2500 * time.Millisecond},
		"sleep for ever":                 {},
		"rm -rf /":                       {stderr: "sh: 1: rm: not found\n", exitCode: 127},
		" ; ":                            {},
	} {
		if diff := cmp.Diff(want, shell("web-1", line), cmp.AllowUnexported(effect{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}
