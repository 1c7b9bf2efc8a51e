package self

import (
	"cmp"
	"context"
	_ "embed" // the module's description
	"encoding/json"
	"maps"
	"os"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/fault"
)

//go:embed module.json
var metadata []byte

// Name is the module's.
const Name = "rpcutil"

// Metadata is the module's description.
func Metadata() []byte { return metadata }

// Config is what the module tells of.
type Config struct {
	Version    string // of the agent
	ConfigFile string
	Started    time.Time
	Facts      func(ctx context.Context) (json.RawMessage, error) // all, an object
	Classes    func() ([]string, error)
	Modules    func() []action.Module // of the node; those without a description have a name
	Counts     func() (Counts, error)
	Data       map[string]builtin.Data // beside fact and agent
}

// Counts are the agent's transactions.
type Counts struct {
	Kept        int `json:"kept"`
	Running     int `json:"running"`
	Waiting     int `json:"waiting"`
	Undelivered int `json:"undelivered"`
}

// Module makes the module.
func Module(cfg Config) builtin.Module {
	cfg.Data = maps.Clone(cfg.Data)
	if cfg.Data == nil {
		cfg.Data = map[string]builtin.Data{}
	}
	cfg.Data["fact"], cfg.Data["agent"] = cfg.factData, cfg.agentData
	return builtin.Module{Name: Name, Metadata: metadata, Calls: map[string]builtin.Call{
		"ping":            builtin.Typed(ping),
		"inventory":       builtin.Typed(cfg.inventory),
		"get_fact":        builtin.Typed(cfg.getFact),
		"get_facts":       builtin.Typed(cfg.getFacts),
		"agent_inventory": builtin.Typed(cfg.agentInventory),
		"collective_info": builtin.Typed(collectiveInfo),
		"daemon_stats":    builtin.Typed(cfg.daemonStats),
		"get_data":        builtin.Typed(cfg.getData),
	}}
}

func ping(context.Context, struct{}) (any, error) {
	return struct {
		Pong int64 `json:"pong"`
	}{time.Now().Unix()}, nil
}

// collective is the name that MCollective gives one which has no other. There are no others: who may call what on which node is decided by roles.
const collective = "mcollective"

func collectiveInfo(context.Context, struct{}) (any, error) {
	return struct {
		Main string   `json:"main_collective"`
		All  []string `json:"collectives"`
	}{collective, []string{collective}}, nil
}

func (c Config) names() []string {
	names := []string{}
	for _, m := range c.Modules() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

func (c Config) inventory(ctx context.Context, _ struct{}) (any, error) {
	facts, err := c.Facts(ctx)
	if err != nil {
		return nil, err
	}
	classes, err := c.Classes()
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, m := range c.Modules() {
		if m.Version != "" {
			versions[m.Name] = m.Version
		}
	}
	return struct {
		Agents   []string          `json:"agents"`
		Versions map[string]string `json:"versions"`
		Facts    json.RawMessage   `json:"facts"`
		Classes  []string          `json:"classes"`
		Version  string            `json:"version"`
		Sources  []string          `json:"data_plugins"`
	}{c.names(), versions, facts, append([]string{}, classes...), c.Version, slices.Sorted(maps.Keys(c.Data))}, nil
}

type wantedFact struct {
	Fact string `json:"fact"`
}

func (c Config) getFact(ctx context.Context, in wantedFact) (any, error) {
	values, err := c.values(ctx, in.Fact)
	return struct {
		Fact  string          `json:"fact"`
		Value json.RawMessage `json:"value"`
	}{in.Fact, values[in.Fact]}, err
}

type wantedFacts struct {
	Facts string `json:"facts"`
}

func (c Config) getFacts(ctx context.Context, in wantedFacts) (any, error) {
	names := strings.FieldsFunc(in.Facts, func(r rune) bool { return r == ',' || r == ' ' })
	values, err := c.values(ctx, names...)
	return struct {
		Values map[string]json.RawMessage `json:"values"`
	}{values}, err
}

var null = json.RawMessage("null")

// values are facts by the names under which they were asked for.
func (c Config) values(ctx context.Context, names ...string) (map[string]json.RawMessage, error) {
	facts, err := c.Facts(ctx)
	if err != nil {
		return nil, err
	}
	values := map[string]json.RawMessage{}
	for _, name := range names {
		value, found := dig(facts, strings.Split(name, "."))
		if !found {
			value = null
		}
		values[name] = value
	}
	return values, nil
}

// agent is a module as agent_inventory tells of it.
type agent struct {
	Agent       string          `json:"agent"`
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Author      string          `json:"author,omitempty"`
	License     string          `json:"license,omitempty"`
	URL         string          `json:"url,omitempty"`
	Provider    action.Provider `json:"provider,omitempty"`
}

func agentOf(m action.Module) agent {
	return agent{m.Name, m.Version, m.Description, m.Author, m.License, m.URL, m.Provider}
}

func (c Config) agentInventory(context.Context, struct{}) (any, error) {
	all := []agent{}
	for _, m := range c.Modules() {
		all = append(all, agentOf(m))
	}
	slices.SortFunc(all, func(a, b agent) int { return cmp.Compare(a.Agent, b.Agent) })
	return struct {
		Agents []agent `json:"agents"`
	}{all}, nil
}

func (c Config) daemonStats(context.Context, struct{}) (any, error) {
	counts, err := c.Counts()
	if err != nil {
		return nil, err
	}
	sample := []metrics.Sample{{Name: "/sched/threads/total:threads"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return struct {
			Agents     []string `json:"agents"`
			ConfigFile string   `json:"configfile"`
			PID        int      `json:"pid"`
			Started    int64    `json:"starttime"`
			Threads    uint64   `json:"threads"`
			Memory     uint64   `json:"memory"`
			Version    string   `json:"version"`
			Counts
		}{c.names(), c.ConfigFile, os.Getpid(), c.Started.Unix(), sample[0].Value.Uint64(), sample[1].Value.Uint64() - sample[2].Value.Uint64(), c.Version, counts},
		nil
}

type question struct {
	Source string `json:"source"`
	Query  string `json:"query"`
}

func (c Config) getData(ctx context.Context, in question) (any, error) {
	source, there := c.Data[in.Source]
	if !there {
		return nil, builtin.Abort("this agent has no data source %s; it has %s", in.Source, strings.Join(slices.Sorted(maps.Keys(c.Data)), ", "))
	}
	return source(ctx, in.Query)
}

// agentData answers the data function agent: what a module is.
func (c Config) agentData(_ context.Context, query string) (any, error) {
	type fields struct {
		Present bool `json:"present"`
		agent
	}
	for _, m := range c.Modules() {
		if m.Name == query {
			return fields{true, agentOf(m)}, nil
		}
	}
	return fields{agent: agent{Agent: query}}, nil
}

// factData answers the data function fact. A value that is an object or a list is given as JSON in a text, as its encoding says.
func (c Config) factData(ctx context.Context, query string) (any, error) {
	facts, err := c.Facts(ctx)
	if err != nil {
		return nil, err
	}
	type fields struct {
		Exists   bool            `json:"exists"`
		Value    json.RawMessage `json:"value"`
		Encoding string          `json:"value_encoding,omitempty"`
	}
	value, found := dig(facts, strings.Split(query, "."))
	if !found {
		return fields{Value: null}, nil
	}
	if value[0] != '{' && value[0] != '[' {
		return fields{true, value, "text/plain"}, nil
	}
	text, err := json.Marshal(string(value))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the fact is no text")
	}
	return fields{true, text, "application/json"}, nil
}
