package sql

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Those who gave up leave their orders in the queue; a queue full of them must
// not refuse writes for ever.
func TestAQueueOfThoseWhoGaveUpIsCleared(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t), QueueActs: 2})
	gone, leave := context.WithCancel(t.Context())
	leave()
	nothing := func(context.Context, querier) error { return nil }
	s.writer.turn <- struct{}{} // somebody leads, and is slow
	for range 2 {
		if err := s.writer.do(gone, nothing); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	wantKind(t, s.writer.do(t.Context(), nothing), fault.Unavailable)
	<-s.writer.turn
	if err := s.writer.do(t.Context(), nothing); err != nil {
		t.Errorf("nobody waits any more, but: %v", err)
	}
}

func TestFullDiskHarmsNothing(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t)})
	kept := sampleReport("a.example", 20, 1)
	if err := s.Reports.SaveReport(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	pages, err := one[int](s.writer.conn.QueryRowContext(t.Context(), "PRAGMA page_count"))
	if err != nil {
		t.Fatal(err)
	}
	limit(t, s, pages+3)
	var mu sync.Mutex
	var wg sync.WaitGroup
	saved, refused := map[fleet.Digest]bool{}, 0
	for w := range 4 {
		wg.Go(func() {
			for n := range 10 {
				r := sampleReport("a.example", 50, int64(w*100+n+10))
				err := s.Reports.SaveReport(t.Context(), r)
				mu.Lock()
				if err == nil {
					saved[r.ID] = true
				} else if refused++; fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) == 0 || !strings.Contains(fault.Detail(err), "full") {
					t.Errorf("a full disk gave %v", err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if refused == 0 {
		t.Error("nothing was refused")
	}
	for n := int64(9000); ; n++ { // the last of them may have found room
		r := sampleReport("a.example", 50, n)
		if s.Reports.SaveReport(t.Context(), r) != nil {
			break
		}
		saved[r.ID] = true
	}
	if since, detail := s.Trouble(); since.IsZero() || !strings.Contains(detail, "full") {
		t.Errorf("the store says of its writes: since %s, %q", since, detail)
	}
	limit(t, s, 1<<30)
	if err := s.TryWrite(t.Context()); err != nil {
		t.Error(err)
	}
	if since, detail := s.Trouble(); !since.IsZero() {
		t.Errorf("after a write that succeeded: since %s, %q", since, detail)
	}
	again := sampleReport("a.example", 50, 5000)
	if err := s.Reports.SaveReport(t.Context(), again); err != nil {
		t.Errorf("with room again: %v", err)
	}
	saved[kept.ID], saved[again.ID] = true, true
	list, err := s.Reports.Reports(t.Context(), inventory.ReportFilter{Page: inventory.Page{Limit: 1000}})
	if err != nil || len(list) != len(saved) {
		t.Errorf("%d reports are there, %v; %d were acknowledged", len(list), err, len(saved))
	}
	for id := range saved {
		if _, err := s.Reports.Report(t.Context(), string(id)); err != nil {
			t.Error(err)
		}
	}
	whole(t, s)
}

func limit(t *testing.T, s *Store, pages int) {
	t.Helper()
	if _, err := s.writer.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
}

func TestClosedIsUnavailable(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantKind(t, s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 1)), fault.Unavailable)
}

// hold takes the writer's turn, so that acts pile up until the returned function
// is called.
func hold(s *Store) (release func()) {
	s.writer.turn <- struct{}{}
	return func() { <-s.writer.turn }
}

// queued waits until n acts wait.
func queued(s *Store, n int) {
	for len(s.writer.queue) < n {
		runtime.Gosched()
	}
}

func TestFullQueueSaysSo(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t), QueueActs: 4})
	release := hold(s)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, int64(n))); err != nil {
				t.Error(err)
			}
		})
	}
	queued(s, 4)
	err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 99))
	wantKind(t, err, fault.Unavailable)
	if fault.RetryAfter(err) == 0 {
		t.Errorf("%v does not say when to come back", err)
	}
	release()
	wg.Wait()
	if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 99)); err != nil {
		t.Error(err)
	}
}

func TestGivenUpWriteIsNotDone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t)})
	release := hold(s)
	ctx, cancel := context.WithCancel(t.Context())
	r := sampleReport("a.example", 1, 1)
	done := make(chan error)
	go func() { done <- s.Reports.SaveReport(ctx, r) }()
	queued(s, 1)
	cancel()
	wantKind(t, <-done, fault.Unavailable)
	release()
	if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, 2)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Reports.Report(t.Context(), string(r.ID))
	wantKind(t, err, fault.NotFound)
}

func TestBadActFailsAlone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: sqlitePath(t)})
	mine := errors.New("mine")
	acts := []act{
		func(ctx context.Context, q querier) error {
			_, _ = q.exec(ctx, "INSERT INTO counters VALUES ('half', '1')")
			return mine
		},
		func(context.Context, querier) error { panic("a mistake") },
		func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, "INSERT INTO counters VALUES ('crl', '1')")
			return err
		},
	}
	release := hold(s)
	var wg sync.WaitGroup
	for _, a := range acts {
		wg.Go(func() {
			if err := s.write(t.Context(), a); err == nil {
				t.Error("a bad act succeeded")
			}
		})
	}
	for n := range 5 {
		wg.Go(func() {
			if err := s.Reports.SaveReport(t.Context(), sampleReport("a.example", 1, int64(n))); err != nil {
				t.Error(err)
			}
		})
	}
	queued(s, 8)
	release()
	wg.Wait()
	list, err := s.Reports.Reports(t.Context(), inventory.ReportFilter{Page: inventory.Page{Limit: 100}})
	if err != nil || len(list) != 5 {
		t.Errorf("%d reports, %v; want 5", len(list), err)
	}
	if n, err := one[int](s.reads.row(t.Context(), "SELECT COUNT(*) FROM counters WHERE name = 'half'")); err != nil || n != 0 {
		t.Errorf("a failed act left %d rows, %v", n, err)
	}
}
