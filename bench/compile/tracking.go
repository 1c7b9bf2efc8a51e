package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// trackingAim is how much more CPU a compilation may take because its inputs are
// noted.
const trackingAim = 0.05

// tracked is what tracking.rb says of one size.
type tracked struct {
	Size          string    `json:"size"`
	Catalogs      int       `json:"catalogs"`
	NotedNanos    int64     `json:"noted_ns"`
	PlainNanos    int64     `json:"plain_ns"`
	Ratio         float64   `json:"ratio"` // the median of the pairs'
	Lower         float64   `json:"lower"` // a quarter of the pairs is below
	Upper         float64   `json:"upper"` // a quarter is above
	RatioOfLeasts float64   `json:"ratio_of_least"`
	Rounds        []float64 `json:"rounds"` // medians, each of other processes
}

// tracking measures what it costs to note a compilation's inputs: the same orders in
// turns by two processes, one of which notes nothing. The ratio is the median of the
// pairs'; half of the pairs are between lower and upper.
func (s settings) tracking(ctx context.Context, dir, environment string) (rows []measure.Row, notes []string, err error) {
	root := filepath.Join(dir, "environment")
	if err := rivals.CopyTree(environment, root); err != nil {
		return nil, nil, err
	}
	if err := os.Mkdir(filepath.Join(root, ".base_modules"), 0o750); err != nil {
		return nil, nil, err
	}
	if err := os.Symlink(moduleDir, filepath.Join(root, ".base_modules", "0")); err != nil {
		return nil, nil, err
	}
	args := []string{"bench/compile/tracking.rb", "internal/compiler/ruby/zygote", root, s.Facts, strconv.Itoa(s.Tracked)}
	for _, size := range sizes {
		args = append(args, size.name)
	}
	ruby := exec.CommandContext(ctx, "ruby", args...) //nolint:gosec // our own script
	ruby.Stderr = os.Stderr
	out, err := ruby.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("measure input tracking: %w", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var t tracked
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return rows, notes, err
		}
		rows = append(rows, measure.Row{Server: "tutti", Case: t.Size + ", input tracking overhead", Figures: map[string]float64{
			"catalogs": float64(t.Catalogs), "cpu_ms_per_catalog": float64(t.NotedNanos) / 1e6,
			"cpu_ms_untracked": float64(t.PlainNanos) / 1e6, "overhead_percent": 100 * (t.Ratio - 1), "overhead_of_least_percent": 100 * (t.RatioOfLeasts - 1),
			"overhead_lower_percent": 100 * (t.Lower - 1), "overhead_upper_percent": 100 * (t.Upper - 1),
		}})
		notes = append(notes, fmt.Sprintf("input tracking overhead, %s: %.1f %% (median of %d pairs, half of them between %.1f and %.1f; of the least: %.1f; medians of rounds: %s); aim below %.0f %%, met: %t",
			t.Size, 100*(t.Ratio-1), t.Catalogs, 100*(t.Lower-1), 100*(t.Upper-1), 100*(t.RatioOfLeasts-1), percents(t.Rounds), 100*trackingAim,
			t.Ratio-1 < trackingAim))
	}
	return rows, notes, nil
}

func percents(ratios []float64) string {
	texts := make([]string, len(ratios))
	for i, ratio := range ratios {
		texts[i] = fmt.Sprintf("%.1f", 100*(ratio-1))
	}
	return strings.Join(texts, ", ")
}
