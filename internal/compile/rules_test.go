package compile_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
)

var (
	drawnTimes      = rapid.Map(rapid.Int64Range(1, 9), func(n int64) time.Time { return time.Unix(n, 0) })
	drawnPriorities = rapid.SampledFrom([]compile.Priority{compile.Waited, compile.NewFacts, compile.NewCode, compile.Background})
	drawnTexts      = rapid.SampledFrom([]string{"", "a", "b"})
)

// drawnRow is a row of one key.
func drawnRow(t *rapid.T, states ...compile.State) compile.Compilation {
	c := compile.Compilation{
		ID: rapid.Int64Range(1, 99).Draw(t, "id"), Node: "a", Environment: "e", Version: "v", FactsSeq: rapid.Int64Range(0, 3).Draw(t, "facts"),
		Transaction: drawnTexts.Draw(t, "transaction"), Priority: drawnPriorities.Draw(t, "priority"), State: rapid.SampledFrom(states).Draw(t, "state"),
		WantedAt: drawnTimes.Draw(t, "wanted at"), Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"), Staged: rapid.Bool().Draw(t, "staged"),
		Checks: rapid.Int64Range(0, 2).Draw(t, "checks"), Trouble: drawnTexts.Draw(t, "trouble"),
	}
	if text := drawnTexts.Draw(t, "trusted"); text != "" {
		c.Trusted = []byte(text)
	}
	if c.State == compile.Leased {
		c.LeasedBy, c.LeasedUntil = "w", drawnTimes.Draw(t, "until")
	}
	return c
}

func drawnWant(t *rapid.T) compile.Want {
	w := compile.Moved(drawnRow(t, compile.Wanted), "v")
	w.Transaction, w.Fresh = drawnTexts.Draw(t, "asks for"), rapid.Bool().Draw(t, "fresh")
	return w
}

// Whoever wants a catalog gets a row that gives one of facts that are new enough, and a plain one if a plain one is wanted.
func TestWhatAnswersAWant(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawnWant(t)
		same := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) compile.Compilation {
			return drawnRow(t, compile.Wanted, compile.Leased, compile.Done, compile.Failed)
		}), 0, 4).Draw(t, "same")
		slices.SortFunc(same, func(a, b compile.Compilation) int { return cmp.Compare(b.ID, a.ID) })
		plain := rapid.Int64Range(0, 99).Draw(t, "plain")
		decided := compile.Decide(w, same, plain)
		row := decided.Row
		if row.State != compile.Failed && row.FactsSeq < w.FactsSeq || row.Staged && !w.Staged || row.State == compile.Wanted && row.Priority > w.Priority {
			t.Fatalf("%+v is answered by %+v", w, row)
		}
		known := slices.ContainsFunc(same, func(c compile.Compilation) bool { return c.ID == row.ID })
		if known != (decided.Act != compile.AddRow) || row.Finished() != (decided.Act == compile.GiveRow) {
			t.Fatalf("%+v: act %d of rows %+v", row, decided.Act, same)
		}
		if decided.Act == compile.RenewRow && row.State != compile.Wanted || decided.Act == compile.ShareRow && !w.Staged && plain > row.ID {
			t.Fatalf("%+v is overtaken by %d, and the act is %d", row, plain, decided.Act)
		}
		if w.Fresh && row.State == compile.Leased {
			t.Fatalf("a fresh want joined %+v", row)
		}
		if decided.Act == compile.AddRow && slices.ContainsFunc(same, func(c compile.Compilation) bool { return c.State == compile.Wanted }) {
			t.Fatalf("two rows are wanted of one key: %+v, %+v", same, row)
		}
	})
}

// Nothing that a lease had gets lost when it comes back, and no row is tried more often than it may.
func TestWhatComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		back, now := drawnRow(t, compile.Leased), time.Unix(9, 0)
		var wanted *compile.Compilation
		if rapid.Bool().Draw(t, "wanted, too") {
			wanted = new(drawnRow(t, compile.Wanted))
		}
		got := back.Returned(now, 2, wanted)
		if back.Attempts >= 2 {
			if got.State != compile.Failed || got.ID != back.ID || got.Err == nil || !got.FinishedAt.Equal(now) {
				t.Fatalf("%+v was tried twice and is %+v", back, got)
			}
			return
		}
		if got.State != compile.Wanted || got.LeasedBy != "" || !got.LeasedUntil.IsZero() || !got.RestsUntil.IsZero() {
			t.Fatalf("came back as %+v", got)
		}
		for _, c := range []*compile.Compilation{&back, wanted} {
			if c == nil {
				continue
			}
			lost := got.FactsSeq < c.FactsSeq || got.Attempts < c.Attempts || got.Priority > c.Priority || got.WantedAt.After(c.WantedAt) ||
				c.Transaction != "" && got.Transaction == "" || len(c.Trusted) > 0 && len(got.Trusted) == 0 || c.Trouble != "" && got.Trouble == "" ||
				got.Staged && !c.Staged
			if lost {
				t.Fatalf("%+v became %+v", c, got)
			}
		}
		if wanted != nil && got.ID != back.ID && got.ID != wanted.ID {
			t.Fatalf("neither %d nor %d, but %d", back.ID, wanted.ID, got.ID)
		}
	})
}

// Only who holds the lease closes a row, and what was wanted plain meanwhile is not closed by a staged catalog.
func TestWhatClosesARow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		row := drawnRow(t, compile.Wanted, compile.Leased, compile.Done)
		c := row
		c.State, c.LeasedBy, c.FinishedAt = rapid.SampledFrom([]compile.State{compile.Done, compile.Failed}).Draw(t, "ends"), "w", time.Unix(9, 0)
		c.Attempts += rapid.IntRange(0, 1).Draw(t, "attempts more")
		c.Staged, c.Held = rapid.Bool().Draw(t, "gives a staged one"), rapid.Bool().Draw(t, "held")
		closed, err := c.Close(row)
		if err != nil {
			if fault.Of(err) != fault.Conflict || row.HeldBy(c) && (row.Staged || !c.Staged || c.Held) {
				t.Fatalf("%+v does not close %+v: %v", c, row, err)
			}
			return
		}
		if !row.HeldBy(c) || closed.State != c.State || c.State == compile.Done && (c.Held || c.Staged) && !closed.Staged || row.Staged && !closed.Staged {
			t.Fatalf("%+v closed %+v as %+v", c, row, closed)
		}
	})
}
