package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
)

// packagedRuby is where Puppet's own packages put their Ruby. Tasks of modules name it in their first line.
const packagedRuby = "/opt/puppetlabs/puppet/bin/ruby"

// shebang is how a program is run that asks for the Ruby of Puppet's own packages on a node that has Puppet from elsewhere: by the
// Ruby that is found in the PATH. Everything else runs as it is.
func shebang(file string) []string { return otherRuby(file, packagedRuby) }

func otherRuby(file, packaged string) []string {
	words := strings.Fields(strings.TrimPrefix(firstLine(file), "#!"))
	if len(words) == 0 || words[0] != packaged {
		return nil
	}
	if _, err := os.Stat(packaged); err == nil {
		return nil
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		return nil // the system's own words say that the interpreter is missing
	}
	return append([]string{ruby}, words[1:]...)
}

// firstLine is the line of a script that names its interpreter; empty if there is none.
func firstLine(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	start := make([]byte, 256)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	line, _, _ := bytes.Cut(start[:n], []byte("\n"))
	if !bytes.HasPrefix(line, []byte("#!")) {
		return ""
	}
	return string(line)
}
