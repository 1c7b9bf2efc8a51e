package server

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/server/settings"
)

func TestOldVersionsAreForgotten(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data, c.VersionRetention = filepath.Join(t.TempDir(), "data"), 24*time.Hour
	p, err := open(t.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	now := time.Now()
	for i := range keepVersions + 3 {
		err := p.store.Versions.SaveVersion(t.Context(), code.Version{
			ID: fleet.DigestOf(fmt.Append(nil, i)), Environment: "production", DeployedAt: now.Add(-25 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.housekeeper.sweep(t.Context(), now.Add(-2*time.Hour))
	wantVersions(t, p, keepVersions+3)
	p.housekeeper.sweep(t.Context(), now)
	wantVersions(t, p, keepVersions)
}

func wantVersions(t *testing.T, p *parts, want int) {
	t.Helper()
	if list, err := p.store.Versions.Versions(t.Context(), "production", 100); err != nil || len(list) != want {
		t.Errorf("%d versions, %v; want %d", len(list), err, want)
	}
}

func TestNodesExpireAndArePurged(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	now := time.Now()
	for i := range 2*purgeBatch + 1 {
		name := fleet.Certname(fmt.Sprintf("n%d.example", i))
		_, _, err := p.store.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: name, Values: []byte(`{}`), ReceivedAt: now.Add(-8 * 24 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := p.store.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: "fresh.example", Values: []byte(`{}`), ReceivedAt: now}); err != nil {
		t.Fatal(err)
	}
	keep := *p.config.Load()
	never := keep
	never.NodeTTL, never.NodePurgeTTL = 0, 0
	for _, step := range []struct {
		config        settings.Config
		at            time.Duration
		left, expired int
	}{
		{never, 0, 2*purgeBatch + 2, 0},
		{keep, -2 * 24 * time.Hour, 2*purgeBatch + 2, 0},
		{keep, 0, 2*purgeBatch + 2, 2*purgeBatch + 1},
		{keep, 13 * 24 * time.Hour, 2*purgeBatch + 2, 2*purgeBatch + 2},
		{never, 30 * 24 * time.Hour, 2*purgeBatch + 2, 2*purgeBatch + 2},
		{keep, 14*24*time.Hour + time.Second, 1, 1},
	} {
		p.config.Store(&step.config)
		p.housekeeper.sweep(t.Context(), now.Add(step.at))
		nodes, err := p.store.Nodes.Nodes(t.Context(), inventory.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		expired := 0
		for _, node := range nodes {
			if !node.ExpiredAt.IsZero() {
				expired++
			}
		}
		if len(nodes) != step.left || expired != step.expired {
			t.Errorf("after %v: %d nodes, %d expired, want %d and %d", step.at, len(nodes), expired, step.left, step.expired)
		}
	}
}

// Older reports are kept in short, where a time for that is set, and who asks for them is told.
func TestOlderReportsAreKeptInShort(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(c *settings.Config) { c.ReportDetailRetention = 24 * time.Hour })
	now := time.Now()
	for age, name := range map[time.Duration]string{30 * time.Hour: "old", 20 * time.Hour: "recent", time.Hour: "newest"} {
		at := now.Add(-age)
		err := p.store.Reports.SaveReport(t.Context(), inventory.Report{
			ID: fleet.DigestOf([]byte(name)), Certname: "a.example", Environment: "production", Status: "changed", ReceivedAt: at, StartedAt: at, EndedAt: at,
			Logs: []inventory.RunLog{{Level: "notice", Message: "it was " + name, Time: at}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	logs := func() string {
		t.Helper()
		query, err := pql.Parse("reports[logs]{}")
		if err != nil {
			t.Fatal(err)
		}
		checked, err := pql.Check(query)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		if err := p.store.Queries.Ask(t.Context(), inventory.Question{Query: checked}, func(row json.RawMessage) error {
			all = append(all, string(row))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, "\n")
	}
	keep := *p.config.Load()
	never := keep
	never.ReportDetailRetention = 0
	p.config.Store(&never)
	p.housekeeper.sweep(t.Context(), now)
	if got := logs(); !strings.Contains(got, "it was old") || strings.Contains(got, "kept in short") {
		t.Errorf("nothing should be kept in short: %s", got)
	}
	p.config.Store(&keep)
	p.housekeeper.sweep(t.Context(), now)
	got := logs()
	if strings.Contains(got, "it was old") || !strings.Contains(got, "it was recent") || !strings.Contains(got, "it was newest") ||
		strings.Count(got, "kept in short") != 1 {
		t.Errorf("one report should be kept in short: %s", got)
	}
	r, err := p.store.Reports.Report(t.Context(), string(fleet.DigestOf([]byte("old"))))
	if err != nil || !r.Short || r.Status != "changed" {
		t.Errorf("the report kept in short is %+v, %v", r, err)
	}
}
