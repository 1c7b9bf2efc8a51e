package sql

import (
	"testing"

	"github.com/tutti-project/tutti/internal/store/usage/usagetest"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		usagetest.RunStore(t, s.Usage)
		before, err := s.Usage.TableBytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for seed := range int64(20) {
			if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 200, seed)); err != nil {
				t.Fatal(err)
			}
		}
		after, err := s.Usage.TableBytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tables, err := readTables(t.Context(), s.reads, s.dialect)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if _, measured := after[table.Name]; !measured {
				t.Errorf("table %s is not measured", table.Name)
			}
		}
		if after["report_documents"] <= before["report_documents"] || after["nodes"] > after["report_documents"] {
			t.Errorf("reports took %d bytes, now %d; nodes %d", before["report_documents"], after["report_documents"], after["nodes"])
		}
		if n, err := s.Backups.BackupBytes(t.Context()); err != nil || n != 0 {
			t.Errorf("backups take %d, %v", n, err)
		}
	})
}
