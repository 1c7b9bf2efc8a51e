package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// queueFigures is the compile queue by priority and by environment. It is read from
// the rows whenever the metrics are: what all servers share counts once.
type queueFigures struct{ queue *sql.Queue }

// shownEnvironments is how many environments have figures of their own, those with the
// most to do; the others are added up under the name of none.
const (
	shownEnvironments = 20
	otherEnvironments = "(others)"
)

// shownTroubles is how many reasons why compilations wait have figures of their own, and how much of each is told.
const (
	shownTroubles    = 5
	shownTroubleText = 200
)

// endedWindow is how far back finished compilations are counted.
const endedWindow = 5 * time.Minute

var (
	depthFigure   = prometheus.NewDesc("tutti_compile_depth", "Compilations that wait, by priority.", []string{"priority"}, nil)
	restingFigure = prometheus.NewDesc("tutti_compile_resting", "Compilations that could not be tried and wait to be tried again.", nil, nil)
	troubleFigure = prometheus.NewDesc("tutti_compile_trouble",
		"Compilations that wait because an attempt could not be made, by what was wrong, of the troubles with the most.", []string{"trouble"}, nil)
	pausedFigure = prometheus.NewDesc("tutti_compile_paused", "Pauses: of an environment, or of all under the name of none.", []string{"environment"}, nil)
	slowedFigure = prometheus.NewDesc("tutti_compile_slowed", "How many compilations in a row took too long, of each environment that is slowed.",
		[]string{"environment", "kind"}, nil)
	environFigure = prometheus.NewDesc("tutti_compile_environment_wanted", "Compilations that wait, of the environments with the most.",
		[]string{"environment"}, nil)
	agedFigure = prometheus.NewDesc("tutti_compile_environment_oldest_seconds", "Age of the oldest compilation that waits, of the environments with the most.",
		[]string{"environment"}, nil)
	endedFigure = prometheus.NewDesc("tutti_compile_ended_5m", "Compilations that ended in the last five minutes, on all servers: compiled, reused, failed.",
		[]string{"result"}, nil)
)

// Describe implements prometheus.Collector.
func (q queueFigures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{depthFigure, restingFigure, troubleFigure, pausedFigure, slowedFigure, environFigure, agedFigure, endedFigure} {
		to <- d
	}
}

// Collect implements prometheus.Collector. While the store does not answer there are
// no figures.
func (q queueFigures) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	now := time.Now()
	if counts, err := q.queue.Counts(ctx); err == nil {
		collectCounts(to, counts, now)
	}
	if ended, err := q.queue.Ended(ctx, now.Add(-endedWindow)); err == nil {
		collectEnded(to, ended)
	}
	if troubles, err := q.queue.Troubles(ctx, shownTroubles); err == nil {
		collectTroubles(to, troubles)
	}
	if pauses, err := q.queue.Pauses(ctx); err == nil {
		for _, p := range pauses[:min(len(pauses), shownEnvironments)] {
			to <- gaugeOf(pausedFigure, 1, string(p.Environment))
		}
	}
	if slowed, err := q.queue.Slowdowns(ctx); err == nil {
		collectSlowed(to, slowed)
	}
}

// collectTroubles adds up what is told in the same words.
func collectTroubles(to chan<- prometheus.Metric, troubles []compile.Trouble) {
	rows := map[string]int{}
	for _, t := range troubles {
		rows[strings.ToValidUTF8(t.Text[:min(len(t.Text), shownTroubleText)], "")] += t.Rows
	}
	for text, n := range rows {
		to <- gaugeOf(troubleFigure, float64(n), text)
	}
}

// collectSlowed has one figure for each environment and kind that is slowed.
func collectSlowed(to chan<- prometheus.Metric, slowed []compile.Slowdown) {
	for _, s := range slowed[:min(len(slowed), shownEnvironments)] {
		kind := "catalogs"
		if s.Apart {
			kind = "previews"
		}
		to <- gaugeOf(slowedFigure, float64(s.Timeouts), string(s.Environment), kind)
	}
}

func gaugeOf(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func collectCounts(to chan<- prometheus.Metric, counts []compile.Count, now time.Time) {
	depth, resting := map[compile.Priority]int{}, 0
	for _, p := range []compile.Priority{
		compile.Waited, compile.Signed, compile.NewFacts, compile.NewExports, compile.NewCode, compile.Previewing, compile.Background,
	} {
		depth[p] = 0
	}
	for _, n := range counts {
		depth[n.Priority] += n.Wanted
		resting += n.Resting
	}
	for p, n := range depth {
		to <- gaugeOf(depthFigure, float64(n), p.String())
	}
	to <- gaugeOf(restingFigure, float64(resting))
	for _, e := range busiest(counts) {
		to <- gaugeOf(environFigure, float64(e.Wanted), string(e.Environment))
		to <- gaugeOf(agedFigure, max(0, now.Sub(e.Oldest).Seconds()), string(e.Environment))
	}
}

// busiest adds up what waits in each environment, the most first, and what is left in
// one more.
func busiest(counts []compile.Count) []compile.Count {
	of := map[fleet.Environment]compile.Count{}
	add := func(env fleet.Environment, n compile.Count) {
		if n.Wanted == 0 {
			return
		}
		sum := of[env]
		if sum.Wanted == 0 || n.Oldest.Before(sum.Oldest) {
			sum.Oldest = n.Oldest
		}
		sum.Environment, sum.Wanted = env, sum.Wanted+n.Wanted
		of[env] = sum
	}
	for _, n := range counts {
		add(n.Environment, n)
	}
	var list []compile.Count
	for _, n := range of {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b compile.Count) int {
		return cmp.Or(cmp.Compare(b.Wanted, a.Wanted), cmp.Compare(a.Environment, b.Environment))
	})
	if len(list) <= shownEnvironments {
		return list
	}
	rest := list[shownEnvironments:]
	clear(of)
	for _, n := range rest {
		add(otherEnvironments, n)
	}
	return append(list[:shownEnvironments:shownEnvironments], of[otherEnvironments])
}

func collectEnded(to chan<- prometheus.Metric, ended []compile.Ended) {
	var all compile.Ended
	for _, e := range ended {
		all.Compiled, all.Reused, all.Failed = all.Compiled+e.Compiled, all.Reused+e.Reused, all.Failed+e.Failed
	}
	to <- gaugeOf(endedFigure, float64(all.Compiled), "compiled")
	to <- gaugeOf(endedFigure, float64(all.Reused), "reused")
	to <- gaugeOf(endedFigure, float64(all.Failed), "failed")
}
