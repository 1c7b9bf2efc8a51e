//go:build unix

package process

import (
	"strings"
	"testing"
)

func TestShellOf(t *testing.T) {
	t.Parallel()
	passwd := "root:x:0:0:root:/root:/bin/bash\nbroken\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nempty:x:2:2:::\n"
	for uid, want := range map[int]string{0: "/bin/bash", 1: "/bin/sh", 2: "/bin/sh", 3: "/bin/sh"} {
		if got := shellOf(strings.NewReader(passwd), uid); got != want {
			t.Errorf("%d has %s, want %s", uid, got, want)
		}
	}
}
