package agent

import (
	_ "embed" // the unit
	"path/filepath"
	"strings"
)

// unit is the agent as a service of systemd.
//
//go:embed tutti-agent.service
var unit string

// UnitFile is where systemd looks for what an administrator installed.
const UnitFile = "/etc/systemd/system/tutti-agent.service"

// Unit is the service for a binary and a directory.
func Unit(binary, dir string) string {
	command := quoted(binary) + " agent run"
	if filepath.Clean(dir) != defaultDir() {
		command += " --dir " + quoted(dir)
	}
	return strings.ReplaceAll(unit, "@COMMAND@", command)
}

// quoted is a word of a unit's command line.
func quoted(word string) string {
	word = strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(word)
	if strings.ContainsAny(word, " \t'\"\\;") {
		return `"` + word + `"`
	}
	return word
}

// Install writes the unit.
func Install(path, binary, dir string) error { return write(path, []byte(Unit(binary, dir)), 0o644) }
