package facter

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
)

// Config says how facts are asked for.
type Config struct {
	Puppet   func() (string, error) // finds the path of puppet
	Timeout  time.Duration          // of one program; 5 minutes
	MaxBytes int                    // of its output; as large as a set may be
	Log      *slog.Logger
}

// Facter asks for facts.
type Facter struct {
	Config
	turn     chan struct{} // holds a token while a program runs
	mu       sync.Mutex
	settings settings
	asked    time.Time // when the settings were
}

// New returns a Facter.
func New(c Config) *Facter {
	c.Timeout, c.MaxBytes = cmp.Or(c.Timeout, 5*time.Minute), cmp.Or(c.MaxBytes, facts.MaxBytes)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Facter{Config: c, turn: make(chan struct{}, 1)}
}

// Facts are all facts of a node.
type Facts struct {
	Values      json.RawMessage // canonical
	Arrangement string          // how they came: see package facts
	Timestamp   time.Time
	Environment string // that the node asks for
}

// All resolves all facts.
func (f *Facter) All(ctx context.Context) (Facts, error) {
	s, err := f.current(ctx)
	if err != nil {
		return Facts{}, err
	}
	out, err := f.run(ctx, append([]string{"facts", "find", s.name(), "--terminus", "facter", "--render-as", "json"}, s.flags()...))
	if err != nil {
		return Facts{}, err
	}
	set, err := facts.Parse(withoutNoise(out))
	if err != nil {
		return Facts{}, fault.Wrap(fault.Unavailable, err, "puppet facts find prints no facts: %s", fault.Detail(err))
	}
	return Facts{Values: set.Values, Arrangement: set.Arrangement, Timestamp: set.Timestamp, Environment: s["environment"]}, nil
}

// Some resolves the facts of these names. Those that there are none of are left out.
func (f *Facter) Some(ctx context.Context, names []string) (json.RawMessage, error) {
	if len(names) == 0 {
		return json.RawMessage("{}"), nil
	}
	s, err := f.current(ctx)
	if err != nil {
		return nil, err
	}
	out, err := f.run(ctx, slices.Concat([]string{"facts", "show"}, names, []string{"--show-legacy", "--render-as", "json"}, s.flags()))
	if err != nil {
		return nil, err
	}
	values, _, err := facts.Canonical(json.RawMessage(withoutNoise(out)))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "puppet facts show prints no facts: %s", fault.Detail(err))
	}
	return values, nil
}

// withoutNoise leaves out what a custom fact prints before the facts.
func withoutNoise(out string) string {
	if i := strings.Index(out, "\n{"); i >= 0 && !strings.HasPrefix(out, "{") {
		return out[i+1:]
	}
	return out
}

// settings are those of Puppet's agent that facts depend on.
type settings map[string]string

// settingNames are what is asked for. The first is the node's name for Puppet.
var settingNames = []string{"node_name_value", "certname", "environment", "noop", "libdir", "factpath", "pluginfactdest"}

func (s settings) name() string { return cmp.Or(s["node_name_value"], s["certname"]) }

// usualEnvironment is not handed on: Puppet would make a fact of it (agent_specified_environment).
const usualEnvironment = "production"

// flags hand the settings of the agent's section to a program that does not read it.
func (s settings) flags() []string {
	var flags []string
	for _, name := range settingNames[1:] {
		switch value := s[name]; {
		case value == "", name == "environment" && value == usualEnvironment:
		case name == "noop" && value == "true":
			flags = append(flags, "--noop")
		case name == "noop":
			flags = append(flags, "--no-noop")
		default:
			flags = append(flags, "--"+name, value)
		}
	}
	return flags
}

// settingsTime is how long Puppet's settings are believed.
const settingsTime = time.Hour

func (f *Facter) current(ctx context.Context) (settings, error) {
	f.mu.Lock()
	known, fresh := f.settings, time.Since(f.asked) < settingsTime
	f.mu.Unlock()
	if known != nil && fresh {
		return known, nil
	}
	out, err := f.run(ctx, []string{"agent", "--configprint", strings.Join(settingNames, ",")})
	if err != nil {
		return nil, err
	}
	s := settings(puppetenv.ParseSettings(out))
	if s.name() == "" {
		return nil, fault.New(fault.Unavailable, "puppet agent --configprint names no certname")
	}
	f.mu.Lock()
	f.settings, f.asked = s, time.Now()
	f.mu.Unlock()
	return s, nil
}
