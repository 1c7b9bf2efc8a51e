package server

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// compileFigures registers what the compilations can be asked for.
func (m *metrics) compileFigures(
	rows *sql.Queue, dispatch *compile.Dispatcher, catalogs *compile.Service, reuser *compile.Reuser,
) {
	type depth struct {
		wanted, leased int
		oldest         time.Duration
	}
	queue := func() depth {
		ctx, cancel := context.WithTimeout(context.Background(), checkTime)
		defer cancel()
		wanted, leased, oldest, err := rows.Depth(ctx, time.Now())
		if err != nil {
			return depth{wanted: -1, leased: -1, oldest: -time.Second}
		}
		return depth{wanted, leased, oldest}
	}
	m.registry.MustRegister(queueFigures{rows})
	m.gauge("tutti_compile_wanted", "Compilations that wait; -1 if the store does not answer.", func() float64 { return float64(queue().wanted) })
	m.gauge("tutti_compile_leased", "Compilations that run.", func() float64 { return float64(queue().leased) })
	m.gauge("tutti_compile_oldest_seconds", "Age of the oldest compilation that waits: it tells when to add a compiler.",
		func() float64 { return queue().oldest.Seconds() })
	m.counter("tutti_compile_done_total", "Compilations that gave a catalog.", func() float64 { return float64(dispatch.Stats().Done) })
	m.counter("tutti_compile_failed_total", "Compilations that gave an error.", func() float64 { return float64(dispatch.Stats().Failed) })
	m.counter("tutti_compile_stopped_total", "Compilations that were stopped and put back because others waited.",
		func() float64 { return float64(dispatch.Stats().Stopped) })
	m.counter("tutti_compile_seconds_total", "Time that compilations took.", func() float64 { return dispatch.Stats().Wall.Seconds() })
	m.counter("tutti_catalog_asked_total", "Catalogs that nodes asked for.", func() float64 { return float64(catalogs.Stats().Asked) })
	for name, figure := range map[string]struct {
		help string
		of   func(compile.ReuserStats) uint64
	}{
		"tutti_catalog_reused_total": {"Catalogs that were used again without a compilation.", func(s compile.ReuserStats) uint64 { return s.Reused }},
		"tutti_catalog_restated_total": {
			"Of them, catalogs that stand for another version than they were compiled of.", func(s compile.ReuserStats) uint64 { return s.Restated },
		},
		"tutti_reuse_checked_total": {"Reused catalogs that were compared with a fresh compilation.", func(s compile.ReuserStats) uint64 { return s.Checked }},
		"tutti_reuse_wrong_total": {
			"Of them, catalogs that differed. Each is an alarm: see the log and `tutti catalog inputs`.", func(s compile.ReuserStats) uint64 { return s.Wrong },
		},
	} {
		m.counter(name, figure.help, func() float64 { return float64(figure.of(reuser.Stats())) })
	}
	m.counter("tutti_catalog_later_total", "Catalogs for which nodes were told to come back.", func() float64 {
		return float64(catalogs.Stats().Later + catalogs.Stats().Shed)
	})
}

// aheadFigures registers what is compiled before anybody asks.
func (m *metrics) aheadFigures(wanter *compile.Wanter) {
	for name, figure := range map[string]struct {
		help string
		of   func(compile.WanterStats) uint64
	}{
		"tutti_ahead_code_total":  {"Catalogs wanted because of new code or changed groups.", func(s compile.WanterStats) uint64 { return s.Code }},
		"tutti_ahead_facts_total": {"Catalogs wanted because a fact changed that was read.", func(s compile.WanterStats) uint64 { return s.Facts }},
		"tutti_ahead_exports_total": {
			"Catalogs wanted because others export something else, or answers to queries changed.", func(s compile.WanterStats) uint64 { return s.Exports },
		},
		"tutti_ahead_signed_total":  {"Catalogs wanted because a certificate was signed.", func(s compile.WanterStats) uint64 { return s.Signed }},
		"tutti_ahead_refresh_total": {"Catalogs wanted because they are old.", func(s compile.WanterStats) uint64 { return s.Background }},
		"tutti_ahead_untouched_total": {
			"Nodes that new code did not touch: their catalogs stand for it.", func(s compile.WanterStats) uint64 { return s.Untouched },
		},
		"tutti_ahead_loops_stopped_total": {
			"Nodes that are not compiled ahead any more because exported resources do not settle.", func(s compile.WanterStats) uint64 { return s.Stopped },
		},
	} {
		m.counter(name, figure.help, func() float64 { return float64(figure.of(wanter.Stats())) })
	}
}
