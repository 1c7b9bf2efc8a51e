package pkitest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki"
)

// journalOf is all lines from a number on, as a reader gets them.
func journalOf(t *testing.T, s pki.Store, from int64) (all string) {
	t.Helper()
	for {
		lines, err := s.JournalLines(t.Context(), from)
		must(t, err)
		if len(lines) == 0 {
			return all
		}
		for _, line := range lines {
			if line.Seq != from {
				t.Fatalf("line %d comes where %d belongs", line.Seq, from)
			}
			all += string(line.Text) + ";"
			from++
		}
	}
}

func journalKept(t *testing.T, s pki.Store) {
	t.Helper()
	at := func(seq int64) pki.Anchor { return pki.Anchor{Identity: "a", Seq: seq, Chain: fmt.Sprint("c", seq)} }
	must(t, s.RestateCA(t.Context(), at(3), nil))
	if got := journalOf(t, s, 0); got != "" {
		t.Errorf("the journal of none is %q", got)
	}
	begun := []pki.JournalLine{{Seq: 2, Text: []byte("two")}, {Seq: 3, Text: []byte("three")}}
	wantKind(t, s.KeepJournal(t.Context(), at(2), begun), fault.Conflict)
	must(t, s.KeepJournal(t.Context(), at(3), begun))
	for seq := int64(4); seq < 10; seq++ {
		c := pki.Change{Before: at(seq - 1), After: at(seq), At: noon, Line: fmt.Append(nil, seq)}
		must(t, s.ChangeCA(t.Context(), c))
		must(t, s.ChangeCA(t.Context(), c)) // again
		c.Before = at(seq - 2)
		c.After.Chain = "other"
		wantKind(t, s.ChangeCA(t.Context(), c), fault.Conflict)
	}
	if got := journalOf(t, s, 2); got != "two;three;4;5;6;7;8;9;" {
		t.Errorf("the journal is %q", got)
	}
	if got := journalOf(t, s, 8); got != "8;9;" {
		t.Errorf("the journal ends with %q", got)
	}
	must(t, s.ChangeCA(t.Context(), pki.Change{Before: at(9), After: at(10), At: noon})) // of one who is alone
	if got := journalOf(t, s, 9); got != "9;" {
		t.Errorf("a change without a line has one: %q", got)
	}
	must(t, s.KeepJournal(t.Context(), at(10), begun[:1]))
	if got := journalOf(t, s, 2); got != "two;" {
		t.Errorf("another journal is %q", got)
	}
	must(t, s.RestateCA(t.Context(), at(11), nil))
	if got := journalOf(t, s, 2); got != "" {
		t.Errorf("the journal of restated records is %q", got)
	}
}

func holdOne(t *testing.T, s pki.Store) {
	t.Helper()
	var inside atomic.Int64
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			for range 5 {
				release, err := s.HoldCA(t.Context())
				if err != nil {
					done <- err
					return
				}
				if n := inside.Add(1); n > 1 {
					t.Errorf("%d hold it", n)
				}
				if _, err := s.CAAnchor(t.Context()); err != nil { // who holds it uses the store
					t.Error(err)
				}
				inside.Add(-1)
				release()
			}
			done <- nil
		}()
	}
	for range cap(done) {
		must(t, <-done)
	}
	release, err := s.HoldCA(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.HoldCA(ctx); err == nil {
		t.Error("two hold it")
	}
	release()
}
