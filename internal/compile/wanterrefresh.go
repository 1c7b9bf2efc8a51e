package compile

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// volatileShare is how much earlier than others volatile catalogs are refreshed.
const volatileShare = 24

// refresh wants the oldest catalogs again, a few at a time. One that is not volatile
// is compared with the fresh one: it should be the same.
func (w *Wanter) refresh(ctx context.Context, current map[fleet.Environment]fleet.Digest) error {
	now, age := time.Now(), w.RefreshAfter()
	if now.Before(w.oldAt) || age <= 0 {
		return nil
	}
	w.oldAt = now.Add(w.cfg.Refresh)
	underway, err := w.Store.Backgrounds(ctx)
	if err != nil || underway >= w.cfg.Refreshes {
		return err
	}
	volatile := now.Add(-max(w.Reuser.VolatileTTL(), age/volatileShare))
	standings, err := w.Store.Oldest(ctx, now.Add(-age), volatile, w.cfg.Refreshes-underway)
	if err != nil {
		return err
	}
	released, err := w.inReleased(ctx, standings)
	if err != nil {
		return err
	}
	var wants []Want
	for _, s := range standings {
		version := current[s.Environment]
		if version == "" || s.FactsSeq == 0 {
			continue
		}
		want := Want{
			Node: s.Node, Environment: s.Environment, Version: version, FactsSeq: s.FactsSeq,
			Priority: Background, At: now, Staged: released[s.Node], Checks: s.Plain.Compilation,
		}
		if s.Volatile {
			want.Checks = 0
		}
		wants = append(wants, want)
	}
	if err := w.Store.Refresh(ctx, wants); err != nil {
		return err
	}
	w.wanted(wants)
	return nil
}

// passConflict ends what another server does already.
func passConflict(err error) error {
	if fault.Of(err) == fault.Conflict {
		return nil
	}
	return err
}
