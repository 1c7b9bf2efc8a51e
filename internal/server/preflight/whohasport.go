package preflight

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// whoListens finds the process that listens on the port of an address, and its name; 0 if this user may not see it.
func whoListens(address string) (pid int, name string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, ""
	}
	number, err := net.LookupPort("tcp", port) //nolint:noctx // it reads a file
	if err != nil {
		return 0, ""
	}
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			if inode := listener(line, number); inode != "" {
				sockets["socket:["+inode+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return 0, ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && sockets[to] {
			process := filepath.Dir(filepath.Dir(link))
			pid, _ = strconv.Atoi(filepath.Base(process))
			text, _ := os.ReadFile(filepath.Join(process, "comm"))
			return pid, strings.TrimSpace(string(text))
		}
	}
	return 0, ""
}

// stateListen is the state of a socket that listens, in the tables of the kernel.
const stateListen = "0A"

// listener returns the inode of the socket that a line of /proc/net/tcp tells of, if it listens on a port.
func listener(line string, port int) string {
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != stateListen {
		return ""
	}
	_, hex, _ := strings.Cut(fields[1], ":")
	if number, err := strconv.ParseInt(hex, 16, 32); err != nil || int(number) != port {
		return ""
	}
	return fields[9]
}
