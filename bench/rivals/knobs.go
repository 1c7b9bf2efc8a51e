package rivals

import (
	"context"
	"flag"
	"time"
)

// Knobs is what every benchmark can be told besides its own settings. They are no part of its report.
type Knobs struct {
	limit time.Duration
	keep  bool
	Out   string // where the JSON goes
}

// Flags makes the flags. All of the benchmark may take limit; kept says what -keep keeps.
func (k *Knobs) Flags(limit time.Duration, kept string) {
	flag.DurationVar(&k.limit, "limit", limit, "time for all of it")
	flag.BoolVar(&k.keep, "keep", false, "keep "+kept)
	flag.StringVar(&k.Out, "out", "bench/out", "where the JSON goes")
}

// Main is [Main] with these knobs.
func (k *Knobs) Main(name string, work func(ctx context.Context, dir string) error) {
	Main(name, k.limit, k.keep, work)
}
