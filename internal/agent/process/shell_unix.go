//go:build unix

package process

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LoginShell is the command line that runs a text: the shell of the user that the
// agent runs as, if it is one for people.
func LoginShell() []string {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return []string{usualShell, "-c"}
	}
	defer func() { _ = f.Close() }()
	return []string{shellOf(f, os.Getuid()), "-c"}
}

const usualShell = "/bin/sh"

// shellOf finds a user's shell in a password database.
func shellOf(passwd io.Reader, uid int) string {
	lines := bufio.NewScanner(passwd)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 7 || fields[2] != strconv.Itoa(uid) {
			continue
		}
		switch filepath.Base(fields[6]) {
		case ".", "nologin", "false":
			return usualShell
		}
		return fields[6]
	}
	return usualShell
}
