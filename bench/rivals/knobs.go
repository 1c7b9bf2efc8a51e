package rivals

import (
	"context"
	"flag"
	"time"
)

// Knobs is what every benchmark can be told besides its own settings. They are no part of its report.
type Knobs struct {
	Out string // where the JSON goes

	limit      time.Duration
	keep       bool
	onPostgres bool
}

// Flags makes the flags. All of the benchmark may take limit; kept says what -keep keeps.
func (k *Knobs) Flags(limit time.Duration, kept string) {
	flag.DurationVar(&k.limit, "limit", limit, "time for all of it")
	flag.BoolVar(&k.keep, "keep", false, "keep "+kept)
	k.PostgresFlag()
	flag.StringVar(&k.Out, "out", "bench/out", "where the JSON goes")
}

// PostgresFlag makes the flag for a benchmark that has others of its own.
func (k *Knobs) PostgresFlag() {
	flag.BoolVar(&k.onPostgres, "postgres", false, "Tutti's records are in a PostgreSQL, which counts as a part of the server")
}

// StartTutti is [StartTutti], or [StartTuttiOnPostgres].
func (k *Knobs) StartTutti(ctx context.Context, binary, dir string, args ...string) (*Tutti, error) {
	if k.onPostgres {
		return StartTuttiOnPostgres(ctx, binary, dir, nil, args...)
	}
	return StartTutti(ctx, binary, dir, args...)
}

// Main is [Main] with these knobs.
func (k *Knobs) Main(name string, work func(ctx context.Context, dir string) error) {
	Main(name, k.limit, k.keep, work)
}
