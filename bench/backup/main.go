// Backup measures what it takes to back up a server and to bring it back: 10 000 nodes with facts, a catalog, a report and a piece of content
// each, on SQLite. Facts are stored all the time meanwhile, as nodes send them; how long each waits is compared with a time without a backup.
// What is restored is counted. Then the server moves to PostgreSQL and an S3 store, and back. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/backup [-nodes 10000] [-changed 2] [-rate 20] [-only move]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Nodes   int           `json:"nodes"`
	Changed int           `json:"changed"` // percent
	Rate    int           `json:"rate"`
	Workers int           `json:"workers"`
	Quiet   time.Duration `json:"quiet"`
	Only    string        `json:"only,omitempty"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.IntVar(&s.Nodes, "nodes", 10_000, "made-up nodes")
	flag.IntVar(&s.Changed, "changed", 2, "percent of the nodes that store new content between two backups")
	flag.IntVar(&s.Rate, "rate", 20, "fact sets a second that are stored while it is measured; 10 000 nodes that check in every half hour send 6")
	flag.IntVar(&s.Workers, "workers", 4, "connections that load")
	flag.DurationVar(&s.Quiet, "quiet", 15*time.Second, "how long fact sets are stored without a backup, to compare with")
	flag.StringVar(&s.Only, "only", "", "move: no backups")
	s.Flags(30*time.Minute, "the server's files, the backups and what was restored")
	flag.Parse()
	s.Main("backup", s.run)
}

var columns = []string{
	"rows", "blobs", "new_blobs", "seconds", "cpu_s", "peak_rss_mb", "archive_mb", "written_mb", "database_mb", "facts_stored",
	"facts_p50_ms", "facts_p99_ms", "facts_max_ms", "stopped_s", "away_s", "late_blobs",
}

func (s settings) run(ctx context.Context, dir string) error {
	if s.Nodes < 1 || s.Changed < 0 || s.Changed > 100 || s.Rate < 1 || s.Workers < 1 {
		return errors.New("-nodes, -rate and -workers are at least 1, and -changed is 0 to 100 percent")
	}
	return measure.Run(measure.Report{Name: "backup", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, judge)
}

// The aims.
const (
	aimWait    = 2   // times what facts wait without a backup
	aimRestore = 120 // seconds
	aimStopped = 60  // seconds
)

func judge(rows []measure.Row) (notes []string) {
	quiet := rows[0].Figures["facts_p99_ms"]
	for _, row := range rows {
		f := row.Figures
		switch row.Case {
		case firstCase, secondCase:
			notes = append(notes, fmt.Sprintf("aim: %s: facts wait at most %d times as long (p99) as without a backup: %.1f times; met: %t",
				row.Case, aimWait, f["facts_p99_ms"]/quiet, f["facts_p99_ms"] <= aimWait*quiet))
		case thereCase, backCase:
			notes = append(notes, fmt.Sprintf("aim: %s: the server is stopped for less than %d s: %.1f s, and nobody answers for %.1f s; met: %t",
				row.Case, aimStopped, f["stopped_s"], f["away_s"], f["stopped_s"] < aimStopped))
		case restoreCase:
			notes = append(notes, fmt.Sprintf("aim: %s: below %d s: %.1f s; met: %t", row.Case, aimRestore, f["seconds"], f["seconds"] < aimRestore))
		}
	}
	return notes
}

// measure starts a server, fills it, and takes it through every case.
func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	return s.Alone(ctx, dir, rivals.AsFastAsItCan, func(tutti *rivals.Tutti, binary string) ([]measure.Row, error) {
		b := &bench{settings: s, tutti: tutti, binary: binary, dir: dir}
		defer b.close()
		if err := b.open(); err != nil {
			return nil, err
		}
		if err := b.fill(ctx); err != nil {
			return nil, err
		}
		if s.Only == "move" {
			return measure.InTurn(ctx, b.quiet, b.there, b.back)
		}
		return measure.InTurn(ctx, b.quiet, b.first, b.second, b.verify, b.restore, b.there, b.back)
	})
}
