package puppetenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Puppet has to be started to tell its settings, which takes as long as a small run. So its answer is kept in a file, and holds while the
// files and names that settings come from are as they were.

// Settings are those of Puppet's agent, by name.
type Settings map[string]string

// Asker gets Puppet's settings.
type Asker struct {
	Puppet string    // its executable
	Kept   string    // the file that its answer is kept in; empty: it is not kept
	Errs   io.Writer // what Puppet prints on standard error; nil: nobody reads it
	Say    func(format string, args ...any)
}

// settingsTime is how long an answer is believed in any case: a newer Puppet may have other defaults.
const settingsTime = time.Hour

// maxSettings bounds the file.
const maxSettings = 64 << 10

// lingering is how long what Puppet left in the background may hold its output.
const lingering = 2 * time.Second

// PluginSettings are those that a sync of plugins needs.
func PluginSettings() []string {
	return []string{
		"certname", "server", "serverport", "server_list", "confdir", "codedir", "vardir", "ssldir",
		"plugindest", "pluginfactdest", "pluginsource", "pluginfactsource", "localedest", "localesource",
	}
}

// names are all that is asked for, by whoever asks: so there is one answer to keep. The file of settings is among them.
func names() string {
	return strings.Join(append([]string{
		"lastrunreport", "agent_disabled_lockfile", "agent_catalog_run_lockfile", "node_name_value", "client_datadir", "config",
		"lastrunfile", "resourcefile", "classfile", "pidfile",
	}, PluginSettings()...), ",")
}

// answer is what Puppet said of its settings.
type answer struct {
	Names    string    `json:"names"` // that were asked for
	Puppet   string    `json:"puppet"`
	As       string    `json:"as"`   // user, home and host name: a node's name and Puppet's directories come from them
	From     []mark    `json:"from"` // the files that settings come from
	At       time.Time `json:"at"`
	Settings Settings  `json:"settings"`
}

// mark is a file as it was.
type mark struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"` // -1: it is not there
	Modified time.Time `json:"modified,omitzero"`
}

func markOf(path string) mark {
	info, err := os.Stat(path)
	if err != nil {
		return mark{Path: path, Size: -1}
	}
	return mark{Path: path, Size: info.Size(), Modified: info.ModTime().UTC()}
}

func (m mark) same(other mark) bool { return m.Size == other.Size && m.Modified.Equal(other.Modified) }

// Settings are those of Puppet now.
func (a Asker) Settings(ctx context.Context) (Settings, error) {
	now := a.question()
	if last, ok := a.last(now); ok && last.holds(now.At) {
		return last.Settings, nil
	}
	before := time.Now()
	found, err := a.ask(ctx)
	if err != nil || a.Kept == "" {
		return found, err
	}
	now.Settings = found
	for _, path := range []string{a.Puppet, found["config"], "/etc/hosts", "/etc/resolv.conf"} { // the last two name the machine's domain
		m := markOf(path)
		if !m.Modified.Before(before) { // it may have changed while Puppet read it
			return found, nil
		}
		now.From = append(now.From, m)
	}
	text, err := json.Marshal(now)
	if err == nil {
		err = Replace(a.Kept, text, 0o600)
	}
	if err != nil && a.Say != nil {
		a.Say("Puppet will be asked for its settings again: %v", err)
	}
	return found, nil
}

// Last are those that Puppet told last, which may have changed since; false: none are kept.
func (a Asker) Last() (Settings, bool) {
	last, ok := a.last(a.question())
	return last.Settings, ok
}

func (a Asker) question() answer {
	host, _ := os.Hostname() // without one there is none to change
	return answer{
		Names: names(), Puppet: a.Puppet, At: time.Now().UTC(),
		As: strings.Join(append(Environment(os.Getenv), os.Getenv("HOME"), host), "\n"),
	}
}

// last is the kept answer to the same question.
func (a Asker) last(now answer) (answer, bool) {
	if a.Kept == "" {
		return answer{}, false
	}
	text, err := ReadBounded(a.Kept, maxSettings)
	if err != nil {
		return answer{}, false
	}
	var last answer
	if err := json.Unmarshal(text, &last); err != nil || last.Names != now.Names || last.Puppet != now.Puppet || last.As != now.As {
		return answer{}, false
	}
	return last, len(last.From) > 0 && last.Settings["lastrunreport"] != ""
}

// holds says whether nothing has changed that settings come from.
func (a answer) holds(now time.Time) bool {
	if age := now.Sub(a.At); age < 0 || age >= settingsTime {
		return false
	}
	for _, m := range a.From {
		if !markOf(m.Path).same(m) {
			return false
		}
	}
	return true
}

// ask starts Puppet.
func (a Asker) ask(ctx context.Context) (Settings, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, a.Puppet, "agent", "--configprint", names()) //nolint:gosec // the operator's puppet
	cmd.Env = append(os.Environ(), Environment(os.Getenv)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, a.Errs, lingering
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("puppet agent --configprint: %w", err)
	}
	found := Settings(ParseSettings(out.String()))
	if found["lastrunreport"] == "" {
		return nil, errors.New("puppet agent --configprint names no lastrunreport")
	}
	return found, nil
}

// ParseSettings reads what `puppet agent --configprint` prints for several settings: a line "name = value" for each.
func ParseSettings(printed string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(printed) {
		if name, value, ok := strings.Cut(line, "="); ok {
			found[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return found
}
