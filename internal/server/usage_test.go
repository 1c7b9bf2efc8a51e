package server

import (
	"strings"
	"testing"
)

// Large tables have a part of their own; the longest beginning decides.
func TestAreasOfTables(t *testing.T) {
	t.Parallel()
	for table, want := range map[string]string{
		"facts": "records: facts", "fact_kinds": "records: facts", "indexed_facts": "records: facts",
		"events": "records: reports", "event_runs": "records: events of runs",
		"reports": "records: reports", "job_output": "records: jobs", "acts": "records: audit log", "versions": "records: code",
		"users": otherTables, "compile_turns": "records: compilations",
	} {
		if got := areaOf(table); got != want {
			t.Errorf("%s belongs to %s, want %s", table, got, want)
		}
	}
	for _, area := range tableAreas {
		if !strings.HasPrefix(area, "records: ") {
			t.Errorf("%q: tables are records", area)
		}
	}
}
