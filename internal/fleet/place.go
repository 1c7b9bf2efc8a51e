package fleet

import (
	"strconv"
	"strings"
)

// codeDir is where agents and compilers say that environments lie.
const codeDir = "/etc/puppetlabs/code/environments/"

// Place is where in an environment's code something is declared, for people:
// manifests/site.pp:12. Empty when it is not known.
func Place(file string, line int) string {
	if file == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(file, codeDir); ok {
		_, file, _ = strings.Cut(rest, "/")
	}
	return file + ":" + strconv.Itoa(line)
}

// Placed is a message behind its place: site.pp:12: message. Without a file it is the message.
func Placed(file string, line int, message string) string {
	if at := Place(file, line); at != "" {
		return at + ": " + message
	}
	return message
}
