package server

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestOldVersionsAreForgotten(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Data, c.VersionRetention = filepath.Join(t.TempDir(), "data"), 24*time.Hour
	p, err := open(t.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	now := time.Now()
	for i := range keepVersions + 3 {
		err := p.store.SaveVersion(t.Context(), code.Version{
			ID: fleet.DigestOf(fmt.Append(nil, i)), Environment: "production", DeployedAt: now.Add(-25 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.sweep(t.Context(), now.Add(-2*time.Hour))
	wantVersions(t, p, keepVersions+3)
	p.sweep(t.Context(), now)
	wantVersions(t, p, keepVersions)
}

func wantVersions(t *testing.T, p *parts, want int) {
	t.Helper()
	if list, err := p.store.Versions(t.Context(), "production", 100); err != nil || len(list) != want {
		t.Errorf("%d versions, %v; want %d", len(list), err, want)
	}
}
