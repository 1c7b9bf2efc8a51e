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

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// kept is a fleet that has its first catalogs, in a directory that stays: the next run goes on from there.
type kept struct {
	Nodes int         `json:"nodes"`
	Roles int         `json:"roles"`
	Time  time.Time   `json:"time"`
	First measure.Row `json:"first"`

	path string
}

// openKept reads what a directory holds; zero Time: nothing yet.
func (s settings) openKept(dir string) (k kept, err error) {
	k = kept{Nodes: s.Nodes, Roles: s.Roles, path: filepath.Join(dir, "first.json")}
	text, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err == nil && (k.Nodes != s.Nodes || k.Roles != s.Roles) {
		err = fmt.Errorf("%s holds %d nodes of %d roles; ask for those, or keep elsewhere", dir, k.Nodes, k.Roles)
	}
	return k, err
}

// orFirst is the case of the first catalogs, as it was measured when they were made.
func (k kept) orFirst(b *bench) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		if k.Time.IsZero() {
			return k.make(ctx, b)
		}
		if err := b.tutti.Deploy(ctx, "production", b.code.dir, moduleDir); err != nil { // whatever the run before changed
			return measure.Row{}, err
		}
		_, _, err := b.current(ctx, "the code as it was")
		return k.First, err
	}
}

func (k kept) make(ctx context.Context, b *bench) (measure.Row, error) {
	k.Time = time.Now().UTC()
	var err error
	if k.First, err = b.first(ctx); err != nil || b.keep == "" {
		return k.First, err
	}
	text, err := json.MarshalIndent(k, "", "  ")
	if err == nil {
		err = os.WriteFile(k.path, append(text, '\n'), 0o600)
	}
	return k.First, err
}

// note says which figures are not of this run.
func (k kept) note() string {
	return fmt.Sprintf("%s: the fleet was kept; these figures are of %s", firstCase, k.Time.Format(time.DateTime))
}
