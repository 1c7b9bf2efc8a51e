package puppetrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
)

// Puppet has to be started to tell its settings, which takes as long as a small run. So its answer is kept in a file, and holds while the
// files and names that settings come from are as they were.

// settings are Puppet's, by name.
type settings map[string]string

// settingsTime is how long an answer is believed in any case: a newer Puppet may have other defaults.
const settingsTime = time.Hour

// maxSettings bounds the file.
const maxSettings = 64 << 10

// answer is what Puppet said of its settings.
type answer struct {
	Names    string    `json:"names"` // that were asked for
	Puppet   string    `json:"puppet"`
	As       string    `json:"as"`   // user, home and host name: a node's name and Puppet's directories come from them
	From     []mark    `json:"from"` // the files that settings come from
	At       time.Time `json:"at"`
	Settings settings  `json:"settings"`
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

// settingNames are what every run asks for. The file of settings is among them.
func settingNames() []string {
	return []string{"lastrunreport", "agent_disabled_lockfile", "agent_catalog_run_lockfile", "node_name_value", "client_datadir", "config", "classfile"}
}

// settings are Puppet's of its agent's section.
func (p *puppet) settings(ctx context.Context) (settings, error) {
	host, _ := os.Hostname() // without one there is none to change
	a := answer{
		Names: strings.Join(append(settingNames(), pluginSettings()...), ","), Puppet: p.bin, At: time.Now().UTC(),
		As: strings.Join(append(puppetenv.Environment(os.Getenv), os.Getenv("HOME"), host), "\n"),
	}
	if kept, ok := p.kept(a); ok {
		return kept, nil
	}
	before := time.Now()
	found, err := p.ask(ctx, a.Names)
	if err != nil || p.Settings == "" {
		return found, err
	}
	a.Settings = found
	for _, path := range []string{p.bin, found["config"], "/etc/hosts", "/etc/resolv.conf"} { // the last two name the machine's domain
		m := markOf(path)
		if !m.Modified.Before(before) { // it may have changed while Puppet read it
			return found, nil
		}
		a.From = append(a.From, m)
	}
	text, err := json.Marshal(a)
	if err == nil {
		err = replace(p.Settings, text, 0o600)
	}
	if err != nil {
		p.say("Puppet will be asked for its settings again: %v", err)
	}
	return found, nil
}

// kept is an answer to the same question that still holds.
func (p *puppet) kept(now answer) (settings, bool) {
	if p.Settings == "" {
		return nil, false
	}
	text, err := readBounded(p.Settings, maxSettings)
	if err != nil {
		return nil, false
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil || a.Names != now.Names || a.Puppet != now.Puppet || a.As != now.As {
		return nil, false
	}
	if age := now.At.Sub(a.At); age < 0 || age >= settingsTime {
		return nil, false
	}
	for _, m := range a.From {
		if !markOf(m.Path).same(m) {
			return nil, false
		}
	}
	return a.Settings, len(a.From) > 0 && a.Settings["lastrunreport"] != ""
}

func (m mark) same(other mark) bool { return m.Size == other.Size && m.Modified.Equal(other.Modified) }

// ask starts Puppet.
func (p *puppet) ask(ctx context.Context, names string) (settings, error) {
	var out bytes.Buffer
	cmd := p.command(ctx, []string{"agent", "--configprint", names})
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("puppet agent --configprint: %w", err)
	}
	found := settings(puppetenv.ParseSettings(out.String()))
	if found["lastrunreport"] == "" {
		return nil, errors.New("puppet agent --configprint names no lastrunreport")
	}
	return found, nil
}
