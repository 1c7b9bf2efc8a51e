package sql

import (
	"errors"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// What a guard refuses is not written, and is no trouble of the database.
func TestGuardedWrites(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t)})
	refusal := fault.Later(time.Second, "no room")
	s.Guard(func() error { return refusal })
	if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 1)); !errors.Is(err, refusal) {
		t.Errorf("refused: %v", err)
	}
	if since, _ := s.Trouble(); !since.IsZero() {
		t.Error("a refusal is taken for trouble")
	}
	s.Guard(func() error { return nil })
	if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 1)); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyIsUnavailable(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t)})
	set := func(flag string) {
		if _, err := s.writer.conn.ExecContext(t.Context(), "PRAGMA query_only = "+flag); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 1))
	wantKind(t, err, fault.Unavailable)
	set("0")
	if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 1)); err != nil {
		t.Error(err)
	}
}
