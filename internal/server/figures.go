package server

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
)

// figures registers what the parts can be asked for.
func (p *parts) figures() {
	type depth struct {
		wanted, leased int
		oldest         time.Duration
	}
	queue := func() depth {
		ctx, cancel := context.WithTimeout(context.Background(), checkTime)
		defer cancel()
		wanted, leased, oldest, err := p.store.Queue.Depth(ctx, time.Now())
		if err != nil {
			return depth{wanted: -1, leased: -1, oldest: -time.Second}
		}
		return depth{wanted, leased, oldest}
	}
	p.metrics.registry.MustRegister(queueFigures{p})
	p.metrics.gauge("tutti_compile_wanted", "Compilations that wait; -1 if the store does not answer.", func() float64 { return float64(queue().wanted) })
	p.metrics.gauge("tutti_compile_leased", "Compilations that run.", func() float64 { return float64(queue().leased) })
	p.metrics.gauge("tutti_compile_oldest_seconds", "Age of the oldest compilation that waits: it tells when to add a compiler.",
		func() float64 { return queue().oldest.Seconds() })
	p.metrics.counter("tutti_compile_done_total", "Compilations that gave a catalog.", func() float64 { return float64(p.dispatch.Stats().Done) })
	p.metrics.counter("tutti_compile_failed_total", "Compilations that gave an error.", func() float64 { return float64(p.dispatch.Stats().Failed) })
	p.metrics.counter("tutti_compile_stopped_total", "Compilations that were stopped and put back because others waited.",
		func() float64 { return float64(p.dispatch.Stats().Stopped) })
	p.metrics.counter("tutti_compile_seconds_total", "Time that compilations took.", func() float64 { return p.dispatch.Stats().Wall.Seconds() })
	p.metrics.counter("tutti_catalog_asked_total", "Catalogs that nodes asked for.", func() float64 { return float64(p.catalogs.Stats().Asked) })
	for name, figure := range map[string]struct {
		help string
		of   func(compile.ReuserStats) uint64
	}{
		"tutti_catalog_reused_total":   {"Catalogs that were used again without a compilation.", func(s compile.ReuserStats) uint64 { return s.Reused }},
		"tutti_catalog_restated_total": {"Of them, catalogs that stand for another version than they were compiled of.", func(s compile.ReuserStats) uint64 { return s.Restated }},
		"tutti_reuse_checked_total":    {"Reused catalogs that were compared with a fresh compilation.", func(s compile.ReuserStats) uint64 { return s.Checked }},
		"tutti_reuse_wrong_total":      {"Of them, catalogs that differed. Each is an alarm: see the log and `tutti catalog inputs`.", func(s compile.ReuserStats) uint64 { return s.Wrong }},
	} {
		p.metrics.counter(name, figure.help, func() float64 { return float64(figure.of(p.reuser.Stats())) })
	}
	p.aheadFigures()
	p.verifyFigures()
	p.metrics.counter("tutti_catalog_later_total", "Catalogs for which nodes were told to come back.", func() float64 { return float64(p.catalogs.Stats().Later + p.catalogs.Stats().Shed) })
}

// aheadFigures registers what is compiled before anybody asks.
func (p *parts) aheadFigures() {
	for name, figure := range map[string]struct {
		help string
		of   func(compile.WanterStats) uint64
	}{
		"tutti_ahead_code_total":          {"Catalogs wanted because of new code or changed groups.", func(s compile.WanterStats) uint64 { return s.Code }},
		"tutti_ahead_facts_total":         {"Catalogs wanted because a fact changed that was read.", func(s compile.WanterStats) uint64 { return s.Facts }},
		"tutti_ahead_exports_total":       {"Catalogs wanted because others export something else, or answers to queries changed.", func(s compile.WanterStats) uint64 { return s.Exports }},
		"tutti_ahead_signed_total":        {"Catalogs wanted because a certificate was signed.", func(s compile.WanterStats) uint64 { return s.Signed }},
		"tutti_ahead_refresh_total":       {"Catalogs wanted because they are old.", func(s compile.WanterStats) uint64 { return s.Background }},
		"tutti_ahead_untouched_total":     {"Nodes that new code did not touch: their catalogs stand for it.", func(s compile.WanterStats) uint64 { return s.Untouched }},
		"tutti_ahead_loops_stopped_total": {"Nodes that are not compiled ahead any more because exported resources do not settle.", func(s compile.WanterStats) uint64 { return s.Stopped }},
	} {
		p.metrics.counter(name, figure.help, func() float64 { return float64(figure.of(p.wanter.Stats())) })
	}
}
