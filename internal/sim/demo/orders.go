package demo

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// order gives orders to the agents, and follows them to their end.
func (d *demo) order(ctx context.Context) error {
	var names []string
	for _, n := range nodes {
		names = append(names, n.name)
	}
	both := strings.Join(names, ",")
	for _, step := range []struct {
		title string
		args  []string
	}{
		{"Run Puppet on both nodes from here, and follow the runs", append([]string{"run"}, names...)},
		{"Run a task of the control repository with parameters", []string{"task", "run", "disk::usage", "path=/", "warn_percent=100", "--targets", both}},
		{"Run a command on both nodes", []string{"command", "run", "uname -s", "--targets", both}},
		{"Run a command on " + fault.Count(d.stage.Nodes, "simulated node"), []string{
			"command", "run", "uname; whoami", "--where",
			"facts.simulated = true", "--yes", "--quiet",
		}},
		{"Ask all nodes how a service is, at once: nodes that say the same are told together", []string{
			"action", "run", "service", "status", "service=puppet", "--all",
		}},
		{"Look at a resource of both real nodes as it is now, with Puppet's own eyes", []string{
			"action", "run", "resource", "find", "type=user", "title=root", "--targets", both,
		}},
		{"What the server knows of jobs", []string{"job", "list"}},
	} {
		if d.stage.Nodes == 0 && strings.Contains(step.title, "simulated") {
			continue
		}
		d.stage.title(step.title)
		if err := d.stage.tutti(ctx, step.args...); err != nil {
			return err
		}
	}
	return nil
}
