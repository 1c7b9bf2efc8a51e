package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals/load"
)

// command is one piece of data as it goes through a server's door.
type command struct {
	name    string
	version int
	node    string
	body    []byte
}

// sink takes commands. Its methods may be called by many workers.
type sink interface {
	send(ctx context.Context, worker int, c command) error
	// drain returns when all but the last few of what was sent are stored; with
	// few = 0, all.
	drain(ctx context.Context, few int) error
}

// loaded is what a directory of data holds, kept beside it. A load that was
// broken off goes on with the stage that it was in: all commands may be sent twice.
type loaded struct {
	Nodes   int                `json:"nodes"`
	Reports int                `json:"reports"`
	Seed    uint64             `json:"seed"`
	Base    time.Time          `json:"base"`
	Stages  map[string]float64 `json:"stages"` // seconds that each took

	path string
}

// openLoaded reads what a directory holds and checks that it is of this fleet.
func (s settings) openLoaded(dir string) (*loaded, error) {
	l := &loaded{
		Nodes: s.Nodes, Reports: s.Reports, Seed: s.Seed, Base: time.Now().UTC().Add(-24 * time.Hour).Truncate(time.Second), Stages: map[string]float64{},
		path: filepath.Join(dir, "loaded.json"),
	}
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		l.Base = sameBase(dir, l.Base)
		return l, l.write()
	}
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err == nil && (l.Nodes != s.Nodes || l.Reports != s.Reports || l.Seed != s.Seed) {
		err = fmt.Errorf("%s holds %d nodes with %d reports of seed %d; ask for those, or keep elsewhere", dir, l.Nodes, l.Reports, l.Seed)
	}
	return l, err
}

// sameBase is the time that other servers beside this one were loaded with: what
// is compared must be the same.
func sameBase(dir string, base time.Time) time.Time {
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "loaded.json"))
	for _, path := range others {
		var other loaded
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &other) == nil {
			return other.Base
		}
	}
	return base
}

func (l *loaded) write() error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(l.path, append(text, '\n'), 0o600)
}

// seconds is how long loading took in all.
func (l *loaded) seconds() float64 {
	var sum float64
	for _, s := range l.Stages {
		sum += s
	}
	return sum
}

type stage struct {
	name string
	of   func(node int) command
}

func (l *loaded) stages() []stage {
	fleet := fleetgen.Fleet{Seed: l.Seed, Base: l.Base}
	stages := []stage{
		{"facts", func(n int) command { return command{"replace_facts", 5, fleet.Certname(n), fleet.WidePuppetDBFacts(n)} }},
		{"catalogs", func(n int) command { return command{"replace_catalog", 9, fleet.Certname(n), fleet.PuppetDBCatalog(n)} }},
	}
	for g := range l.Reports {
		stages = append(stages, stage{fmt.Sprintf("reports %d", g+1), func(n int) command {
			return command{"store_report", 8, fleet.Certname(n), fleet.WidePuppetDBReport(n, g)}
		}})
	}
	return stages
}

// inFlight is how many commands may be accepted but not yet stored.
const inFlight = 400

// fill sends what is not there yet, stage by stage.
func (l *loaded) fill(ctx context.Context, name string, workers int, into sink) error {
	for _, stage := range l.stages() {
		if _, done := l.Stages[stage.name]; done {
			continue
		}
		begin := time.Now()
		_, err := load.Run(ctx, load.Plan{Workers: workers, Total: l.Nodes}, func(ctx context.Context, worker, node int) error {
			if err := into.send(ctx, worker, stage.of(node)); err != nil {
				return err
			}
			if node%1000 == 999 {
				fmt.Fprintf(os.Stderr, "%s: %s: %d of %d after %.0f s\n", name, stage.name, node+1, l.Nodes, time.Since(begin).Seconds())
			}
			if node%100 == 0 {
				return into.drain(ctx, inFlight)
			}
			return nil
		})
		if err == nil {
			err = into.drain(ctx, 0)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
		l.Stages[stage.name] = time.Since(begin).Seconds()
		if err := l.write(); err != nil {
			return err
		}
	}
	return nil
}
