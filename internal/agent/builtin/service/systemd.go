package service

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

// systemd asks systemctl.
type systemd struct{ tools tool.Box }

func (s systemd) state(ctx context.Context, name string) (State, error) {
	done, err := s.tools.Run(ctx, tool.Command{
		Name: "systemctl", Args: []string{"show", "--no-pager", "-p", "LoadState,ActiveState,SubState,UnitFileState", "--", unitOf(name)},
	})
	if err != nil {
		return State{}, err
	}
	if done.Exit != 0 {
		return State{}, builtin.Abort("systemctl cannot say how the service %s is: %s", name, done.Why())
	}
	return parseShow(done.Stdout)
}

func (s systemd) act(ctx context.Context, do verb, name string) (string, error) {
	done, err := s.tools.Run(ctx, tool.Command{Name: "systemctl", Args: []string{"--no-ask-password", "--no-pager", string(do), "--", unitOf(name)}})
	if err != nil || done.Exit == 0 {
		return "", err
	}
	return done.Why(), nil
}

// unitOf is the unit of a name. A name without a type is a service's: systemctl would take a bare number for a job.
func unitOf(name string) string {
	types := []string{".service", ".socket", ".timer", ".target", ".path", ".mount", ".automount", ".swap", ".slice", ".scope", ".device"}
	if slices.Contains(types, path.Ext(name)) {
		return name
	}
	return name + ".service"
}

// parseShow reads what `systemctl show` prints: one property a line.
func parseShow(text string) (State, error) {
	is := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			is[key] = value
		}
	}
	switch is["LoadState"] {
	case "not-found":
		return State{}, errUnknown
	case "":
		return State{}, builtin.Abort("systemctl does not say how the service is")
	}
	s := State{Status: stopped, Enabled: is["UnitFileState"], State: is["ActiveState"], Provider: "systemd"}
	switch is["ActiveState"] {
	case "active", "reloading", "refreshing":
		s.Status = running
	}
	if is["SubState"] != "" {
		s.State += " (" + is["SubState"] + ")"
	}
	return s, nil
}
