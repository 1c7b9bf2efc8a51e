package processes

import (
	"context"
	_ "embed" // the module's description
	"os/user"
	"regexp"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/fault"
)

//go:embed module.json
var metadata []byte

// Module makes the module.
func Module() builtin.Module {
	return builtin.Module{Name: "process", Metadata: metadata, Calls: map[string]builtin.Call{"list": builtin.Typed(list)}}
}

const (
	maxRows        = 1000
	maxCommandLine = 1024 // bytes of a command line that are shown
)

// Process is one that runs, or that ended and that nobody waited for.
type Process struct {
	PID         int    `json:"pid"`
	Parent      int    `json:"ppid"`
	UID         int    `json:"uid"`
	User        string `json:"username,omitempty"`
	State       string `json:"state"`           // a letter, as ps has it
	VirtualSize int64  `json:"vsize,omitempty"` // bytes
	Resident    int64  `json:"rss,omitempty"`   // bytes
	Name        string `json:"comm,omitempty"`
	CommandLine string `json:"cmdline"` // what has none has its name in brackets
}

func (p Process) zombie() bool { return strings.HasPrefix(p.State, "Z") }

type listing struct {
	Processes []Process `json:"pslist"`
	Count     int       `json:"count"` // that match
	Cut       bool      `json:"cut"`
}

type wanted struct {
	Pattern string `json:"pattern"`
	Zombies bool   `json:"just_zombies"`
}

func list(ctx context.Context, in wanted) (any, error) {
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, fault.New(fault.Invalid, "field pattern: it is no regular expression")
	}
	all, err := running(ctx)
	if err != nil {
		return nil, err
	}
	return pick(all, pattern, in.Zombies), nil
}

// pick takes those that match, in the order of all.
func pick(all []Process, pattern *regexp.Regexp, zombies bool) listing {
	l := listing{Processes: []Process{}}
	names := map[int]string{}
	for _, p := range all {
		if !pattern.MatchString(p.CommandLine) || zombies && !p.zombie() {
			continue
		}
		l.Count++
		if len(l.Processes) == maxRows {
			l.Cut = true
			continue
		}
		if p.User == "" {
			p.User = userName(names, p.UID)
		}
		if len(p.CommandLine) > maxCommandLine {
			p.CommandLine = strings.ToValidUTF8(p.CommandLine[:maxCommandLine], "") + "..."
		}
		l.Processes = append(l.Processes, p)
	}
	return l
}

// userName looks up who has an ID; empty: nobody.
func userName(known map[int]string, id int) string {
	if name, ok := known[id]; ok {
		return name
	}
	known[id] = ""
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		known[id] = u.Username
	}
	return known[id]
}

// Data answers the data function process.
func Data() builtin.Data {
	return func(ctx context.Context, query string) (any, error) {
		pattern, err := regexp.Compile(query)
		if err != nil {
			return nil, fault.New(fault.Invalid, "field query: it is no regular expression")
		}
		all, err := running(ctx)
		count := pick(all, pattern, false).Count
		return struct {
			Exists bool `json:"exists"`
			Count  int  `json:"count"`
		}{count > 0, count}, err
	}
}
