package rbactest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

// RecordAct implements rbac.AuditStore.
func (s *Fake) RecordAct(_ context.Context, e rbac.Entry) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.nextID
	s.nextID++
	e.ID = s.nextID
	s.acts = append(s.acts, e)
	s.lines = append(s.lines, s.end.Record(e, last)...)
	return e.ID, nil
}

func (s *Fake) act(id int64) (*rbac.Entry, bool) {
	i, there := slices.BinarySearchFunc(s.acts, id, func(e rbac.Entry, id int64) int { return cmp.Compare(e.ID, id) })
	if !there {
		return &rbac.Entry{}, false
	}
	return &s.acts[i], true
}

// FinishAct implements rbac.AuditStore.
func (s *Fake) FinishAct(_ context.Context, id int64, outcome rbac.Outcome, detail string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, there := s.act(id)
	if !there {
		return fault.New(fault.NotFound, "there is no entry %d", id)
	}
	ended := *e
	ended.Outcome, ended.Detail = outcome, detail
	line, err := s.end.Finish(e.Outcome, ended, at)
	if err != nil {
		return err
	}
	*e, s.lines = ended, append(s.lines, line)
	return nil
}

// PruneActs implements rbac.AuditStore.
func (s *Fake) PruneActs(_ context.Context, before, now time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := rbac.Forgotten(s.lines, before)
	if n == 0 {
		return 0, nil
	}
	gone := s.lines[:n]
	s.lines = append(slices.Clone(s.lines[n:]), s.end.Prune(gone[n-1], 0, now))
	s.heads = slices.DeleteFunc(s.heads, func(h rbac.Head) bool { return h.Seq <= gone[n-1].Seq })
	had := len(s.acts)
	s.acts = slices.DeleteFunc(s.acts, func(e rbac.Entry) bool {
		return !slices.ContainsFunc(s.lines, func(l rbac.Line) bool { return l.Kind != rbac.LinePruned && l.Act == e.ID })
	})
	return had - len(s.acts), nil
}

// ChainPage implements rbac.ChainStore.
func (s *Fake) ChainPage(_ context.Context, after int64, limit int) (rbac.ChainPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page, through := rbac.ChainPage{End: s.end}, after
	for _, l := range s.lines {
		if l.Seq > after && len(page.Lines) < limit {
			line := rbac.ChainLine{Line: l}
			if l.Kind != rbac.LineOpened && l.Kind != rbac.LinePruned {
				e, _ := s.act(l.Act)
				line.Entry = *e
			}
			page.Lines, through = append(page.Lines, line), l.Seq
		}
	}
	for _, h := range s.heads {
		if h.Seq > after && (h.Seq <= through || len(page.Lines) < limit) {
			page.Heads = append(page.Heads, h)
		}
	}
	return page, nil
}

// LineBefore implements rbac.ChainStore.
func (s *Fake) LineBefore(_ context.Context, at time.Time) (seq int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if l.At.Before(at) {
			seq = l.Seq
		}
	}
	return seq, nil
}

// Unchained implements rbac.ChainStore.
func (s *Fake) Unchained(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.acts {
		says := func(l rbac.Line) bool {
			return l.Act == e.ID && (l.Kind == rbac.LineWhole || l.Kind == rbac.LineEnded ||
				l.Kind == rbac.LineStarted && e.Outcome == rbac.Started && e.Detail == "")
		}
		if !slices.ContainsFunc(s.lines, says) {
			return e.ID, nil
		}
	}
	return 0, nil
}

// SaveHead implements rbac.ChainStore.
func (s *Fake) SaveHead(_ context.Context, h rbac.Head) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, there := slices.BinarySearchFunc(s.heads, h.Seq, func(h rbac.Head, seq int64) int { return cmp.Compare(h.Seq, seq) })
	if !there {
		s.heads = slices.Insert(s.heads, i, h)
	}
	return nil
}

// LastHead implements rbac.ChainStore.
func (s *Fake) LastHead(context.Context) (h rbac.Head, end rbac.ChainEnd, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads) > 0 {
		h = s.heads[len(s.heads)-1]
	}
	return h, s.end, nil
}
