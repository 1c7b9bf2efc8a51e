package rbac_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

// The bytes that digests are of never change: chains that exist could not be verified any more.
func TestTextsOfLinesStay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	e := rbac.Entry{
		ID: 7, At: at, ActorKind: "user", Actor: "ann", Token: "t1", Operation: "node.purge", Object: "<w&b>\u2028", Remote: "192.0.2.1",
		RequestID: "r1", Outcome: rbac.Failed, Detail: "ü", Mark: rbac.BreakGlass,
	}
	begun, ended := rbac.Line{Seq: 2, Kind: rbac.LineStarted, Act: 7, Previous: "d1"}, rbac.Line{Seq: 3, Kind: rbac.LineEnded, Act: 7, At: at, Previous: "d2"}
	whole := rbac.Line{Seq: 2, Kind: rbac.LineWhole, Act: 7, Previous: "d1"}
	pruned := rbac.Line{Seq: 9, Kind: rbac.LinePruned, At: at, Previous: "d8", Upto: 8, Through: "d8"}
	for want, l := range map[string]rbac.Line{
		`{"seq":1,"previous":"","kind":"opened","at":"2026-03-01T11:00:00.123456Z","entry":6}`: {Seq: 1, Kind: rbac.LineOpened, Act: 6, At: at},
		`{"seq":2,"previous":"d1","kind":"whole","at":"2026-03-01T11:00:00.123456Z","entry":7,"actor_kind":"user","actor":"ann","token":"t1",` +
			`"operation":"node.purge",` +
			`"object":"\u003cw\u0026b\u003e\u2028","remote":"192.0.2.1","request_id":"r1","mark":"break-glass","outcome":"failed","detail":"ü"}`: whole,
		`{"seq":2,"previous":"d1","kind":"started","at":"2026-03-01T11:00:00.123456Z","entry":7,"actor_kind":"user","actor":"ann","token":"t1",` +
			`"operation":"node.purge",` +
			`"object":"\u003cw\u0026b\u003e\u2028","remote":"192.0.2.1","request_id":"r1","mark":"break-glass","outcome":"started"}`: begun,
		`{"seq":3,"previous":"d2","kind":"ended","at":"2026-03-01T11:00:00.123456Z","entry":7,"outcome":"failed","detail":"ü"}`: ended,
		`{"seq":9,"previous":"d8","kind":"pruned","at":"2026-03-01T11:00:00.123456Z","upto":8,"through":"d8"}`:                  pruned,
	} {
		if got := string(l.Text(e)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	head := rbac.Head{Seq: 9, Digest: "d9", At: at}
	if got, want := string(head.Text()), "tutti audit head\n9\nd9\n2026-03-01T11:00:00Z\n"; got != want {
		t.Errorf("a head: got %q, want %q", got, want)
	}
}

// A head is signed at the start, every hour in which something was recorded, and at the end.
func TestHeadsAreSignedEveryHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := rbactest.New()
		record := func() {
			t.Helper()
			if _, err := store.RecordAct(t.Context(), rbac.Entry{At: time.Now(), Actor: "ann", Outcome: rbac.Denied}); err != nil {
				t.Fatal(err)
			}
		}
		signed := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if head, _, err := store.LastHead(t.Context()); err != nil || head.Seq != want {
				t.Errorf("%s the last head is of line %d, %v, want %d", when, head.Seq, err, want)
			}
		}
		record()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- rbac.NewChain(store, rbactest.Seal{}, slog.New(slog.DiscardHandler)).Run(ctx) }()
		signed("at the start", 2) // the first line is the log's own
		record()
		<-time.After(59 * time.Minute)
		signed("within the hour", 2)
		<-time.After(2 * time.Minute)
		signed("after an hour", 3)
		<-time.After(5 * time.Hour)
		record()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		signed("at the end", 4)
	})
}

// Whatever is recorded, ended, forgotten and signed in whatever order: the chain is whole. Any one thing that is changed in what a
// page says is noticed.
func TestChainsStayWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx, store := t.Context(), rbactest.New()
		chain := rbac.NewChain(store, rbactest.Seal{}, slog.New(slog.DiscardHandler))
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		var open []int64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at = at.Add(time.Minute)
			var err error
			switch step := rapid.SampledFrom([]string{"start", "refuse", "end", "prune", "sign"}).Draw(t, "step"); {
			case step == "start":
				var id int64
				id, err = store.RecordAct(ctx, rbac.Entry{At: at, Actor: "ann", Outcome: rbac.Started})
				open = append(open, id)
			case step == "refuse":
				_, err = store.RecordAct(ctx, rbac.Entry{At: at, Actor: rapid.String().Draw(t, "actor"), Outcome: rbac.Denied, Detail: "no"})
			case step == "end" && len(open) > 0:
				if err = store.FinishAct(ctx, open[0], rbac.Done, "", at); err != nil { // forgotten before its end
					err = nil
				}
				open = open[1:]
			case step == "prune":
				_, err = store.PruneActs(ctx, at.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "minutes"))*time.Minute), at)
			case step == "sign":
				_, err = chain.Sign(ctx, at)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := chain.Verify(ctx, rbac.ChainEnd{}); err != nil {
				t.Fatal(err)
			}
		}
		page, _ := store.ChainPage(ctx, 0, 1000)
		if len(page.Lines) < 2 {
			return
		}
		victim := rapid.IntRange(0, len(page.Lines)-1).Draw(t, "victim")
		check := rbac.Checker{Good: func(rbac.Head) error { return nil }}
		var err error
		for i, l := range page.Lines {
			if i == victim {
				l.At, l.Entry.At = l.At.Add(time.Second), l.Entry.At.Add(time.Second)
			}
			if _, err = check.Line(l.Text(l.Entry), l.Digest); err != nil {
				break
			}
		}
		if err == nil {
			t.Fatalf("nobody noticed that line %d was changed", page.Lines[victim].Seq)
		}
	})
}
