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
