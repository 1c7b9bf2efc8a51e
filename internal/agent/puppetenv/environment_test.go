package puppetenv

import (
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string]bool{"C": true, "POSIX": true, "": true, "C.UTF-8": false, "de_DE.UTF-8": false} {
		env := Environment(func(name string) string { return map[string]string{"LANG": locale, "RUBYOPT": "-w"}[name] })
		if got := strings.Contains(strings.Join(env, " "), "RUBYOPT=-EUTF-8 -w"); got != want {
			t.Errorf("%q: %q", locale, env)
		}
	}
}
