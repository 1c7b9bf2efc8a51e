package puppetrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// A run from a cached catalog syncs no plugins, so they are synced before it, once for each version. What was
// synced last is remembered in a file; a run that syncs by itself makes that unknown.

// pluginTime bounds a sync: a server that does not answer must not keep a node from its run.
const pluginTime = 10 * time.Minute

// syncPlugins brings the plugins of a catalog's version, unless they are there. Without a server the run has those
// that were synced before.
func (p *puppet) syncPlugins(ctx context.Context, c pxp.PuppetCatalog, s puppetenv.Settings) {
	const marks = 4 << 10
	mark := c.Environment + " " + c.Version + "\n"
	if have, err := puppetenv.ReadBounded(p.Plugins, marks); p.Plugins == "" || err == nil && string(have) == mark {
		return
	}
	if err := p.download(ctx, c.Environment, s); err != nil {
		p.say("plugins not synced, the run goes on with those that are there: %v", err)
		return
	}
	if err := puppetenv.Replace(p.Plugins, []byte(mark), 0o600); err != nil {
		p.say("plugins will be synced again: %v", err)
	}
}

func (p *puppet) download(ctx context.Context, line string, s puppetenv.Settings) error {
	args := []string{"plugin", "download", "--environment", line, "--http_connect_timeout", "15s"}
	for _, name := range puppetenv.PluginSettings() { // `puppet plugin` is not the agent, and would not read those of the agent's section
		value := s[name]
		if name == "server_list" {
			value = serverList(value)
		}
		if value != "" {
			args = append(args, "--"+name, value)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, pluginTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.bin, args...) //nolint:gosec // settings of this node's Puppet
	cmd.Env = append(os.Environ(), puppetenv.Environment(os.Getenv)...)
	cmd.Stdout, cmd.Stderr = p.errs, p.errs
	cmd.WaitDelay = lingering
	return cmd.Run()
}

// serverList writes the list as it is given; Puppet prints it as [["host", "port"], ...].
func serverList(printed string) string {
	var list [][]string
	if json.Unmarshal([]byte(printed), &list) != nil {
		return ""
	}
	var all []string
	for _, server := range list {
		all = append(all, strings.Join(server, ":"))
	}
	return strings.Join(all, ",")
}

// forgetPlugins is for a run that syncs plugins by itself.
func (p *puppet) forgetPlugins(args []string) {
	if p.Plugins == "" || slices.Contains(args, "--use_cached_catalog") {
		return
	}
	if err := os.Remove(p.Plugins); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.say("which plugins are synced is not known any more: %v", err)
	}
}

// say adds a line to what Puppet prints.
func (p *puppet) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.errs, "tutti: "+format+"\n", args...)
}
