package service

import (
	"context"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
)

// puppetService asks Puppet's own provider.
type puppetService struct{ puppet string }

func (p puppetService) state(ctx context.Context, name string) (State, error) {
	done, err := p.resource(ctx, name)
	if err != nil {
		return State{}, err
	}
	if done.Exit != 0 {
		return State{}, builtin.Abort("puppet cannot say how the service %s is: %s", name, done.Why())
	}
	return parseResource(name, done.Stdout)
}

// step is a property that a service is given.
type step struct{ property, value string }

var puppetSteps = map[verb][]step{
	start: {{"ensure", running}}, stop: {{"ensure", stopped}}, restart: {{"ensure", stopped}, {"ensure", running}},
	enable: {{"enable", "true"}}, disable: {{"enable", "false"}},
}

func (p puppetService) act(ctx context.Context, do verb, name string) (string, error) {
	for _, to := range puppetSteps[do] {
		done, err := p.resource(ctx, name, to.property+"="+to.value)
		if err != nil {
			return "", err
		}
		if done.Exit != 0 {
			return done.Why(), nil
		}
		is, err := printedOf(name, done.Stdout)
		if err != nil {
			return "", err
		}
		if now := map[string]string{"ensure": is.Ensure, "enable": is.Enable}[to.property]; now != to.value { // puppet ends with 0 also when it failed
			return "its " + to.property + " is " + now + " afterwards: " + done.Why(), nil
		}
	}
	return "", nil
}

func (p puppetService) resource(ctx context.Context, name string, properties ...string) (tool.Done, error) {
	args := slices.Concat([]string{"resource", "service", name}, properties, []string{"--to_yaml", "--color=false"})
	return tool.Box{}.Run(ctx, tool.Command{Name: p.puppet, Args: args, Env: append([]string{"LC_ALL=C.UTF-8"}, puppetenv.Environment(os.Getenv)...)})
}

// blind are providers that call every service stopped for which they find no script.
var blind = []string{"", "base", "init", "debian", "redhat"}

// printed is what puppet prints of a service.
type printed struct {
	Ensure   string `yaml:"ensure"`
	Enable   string `yaml:"enable"`
	Provider string `yaml:"provider"`
}

// printedOf reads what `puppet resource service NAME --to_yaml` prints, below the notices of what it changed.
func printedOf(name, text string) (printed, error) {
	if i := strings.LastIndex(text, "---\n"); i >= 0 {
		text = text[i:]
	}
	var all struct {
		Service map[string]printed `yaml:"service"`
	}
	if err := yaml.Unmarshal([]byte(text), &all); err != nil || len(all.Service) != 1 {
		return printed{}, builtin.Abort("puppet does not say how the service %s is", name)
	}
	return all.Service[name], nil
}

func parseResource(name, text string) (State, error) {
	is, err := printedOf(name, text)
	if err != nil {
		return State{}, err
	}
	if is.Ensure == "" || is.Ensure == stopped && slices.Contains(blind, is.Provider) {
		return State{}, errUnknown
	}
	s := State{Status: stopped, Enabled: is.Enable, State: is.Ensure, Provider: is.Provider}
	if is.Ensure == running {
		s.Status = running
	}
	switch is.Enable {
	case "true":
		s.Enabled = enabled
	case "false":
		s.Enabled = disabled
	}
	return s, nil
}
