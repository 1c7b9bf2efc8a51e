package rivals

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// AsFastAsItCan is arguments for `tutti server`: what is compiled to check a reuse is not what is measured, a busy machine
// is no reason to wait, and one node asks as often as it can.
var AsFastAsItCan = []string{"--reuse-check=0", "--max-load=0", "--verify-share=off", "--verify-after-deploy=0", "--facts-per-minute=0"}

// Alone compiles Tutti, starts it below dir with more arguments for `tutti server`, has rows measured, and stops it.
func (k *Knobs) Alone(ctx context.Context, dir string, args []string,
	rows func(tutti *Tutti, binary string) ([]measure.Row, error),
) ([]measure.Row, error) {
	binary, err := BuildTutti(ctx, dir)
	if err != nil {
		return nil, err
	}
	tutti, err := k.StartTutti(ctx, binary, filepath.Join(dir, "server"), args...)
	if err != nil {
		return nil, err
	}
	return whileItRuns(tutti.Stop, func() ([]measure.Row, error) { return rows(tutti, binary) })
}

// whileItRuns measures, then stops a server. What goes wrong with either is said: a server that does not stop is often why nothing was measured.
func whileItRuns(stop func() error, rows func() ([]measure.Row, error)) (measured []measure.Row, err error) {
	defer func() { err = errors.Join(err, stop()) }()
	return rows()
}
