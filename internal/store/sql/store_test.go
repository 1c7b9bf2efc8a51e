package sql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("error = %v, want kind %s", err, want)
	}
}

func sqlitePath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "tutti.db")
}

func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	path := sqlitePath(t)
	openTest(t, Config{Path: path})
	_, err := Open(t.Context(), Config{Path: path}, slog.New(slog.DiscardHandler))
	wantKind(t, err, fault.Conflict)
	if !strings.Contains(fault.Detail(err), "another server") {
		t.Errorf("detail %q does not say why", fault.Detail(err))
	}
}

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

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	path := sqlitePath(t)
	openTest(t, Config{Path: path})
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 4 {
		t.Errorf("files %v, %v; want database, WAL, index and lock", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v; want 0600", file, info.Mode(), err)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("this is no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config Config
		want   fault.Kind
	}{
		"no directory":         {Config{Path: filepath.Join(dir, "none", "tutti.db")}, fault.Unavailable},
		"a file as directory":  {Config{Path: filepath.Join(garbage, "tutti.db")}, fault.Unavailable},
		"garbage":              {Config{Path: garbage}, fault.Internal},
		"a directory":          {Config{Path: dir}, fault.Unavailable},
		"a socket not there":   {Config{URL: "postgres:///x?user=tutti&host=" + dir}, fault.Unavailable},
		"an unreadable URL":    {Config{URL: "postgres://%zz"}, fault.Invalid},
		"a database not there": {Config{URL: postgres.url("nothing")}, fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), c.config, slog.New(slog.DiscardHandler))
			wantKind(t, err, c.want)
			t.Log(err)
		})
	}
}

func TestServersStartTogether(t *testing.T) {
	t.Parallel()
	url := postgres.database(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := Open(t.Context(), Config{URL: url}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestServersShareAPostgres(t *testing.T) {
	t.Parallel()
	url := postgres.database(t)
	stores := []*Store{openTest(t, Config{URL: url}), openTest(t, Config{URL: url}), openTest(t, Config{URL: url})}
	var wg sync.WaitGroup
	for i, s := range stores {
		for w := range 4 {
			wg.Go(func() {
				for n := range 5 {
					node := fleet.Certname(fmt.Sprintf("n%d", (w+n)%5))
					values := fmt.Appendf(nil, `{"i":%d,"p%d":{"q":%d}}`, i, n, w)
					if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Values: values}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for n := range 5 {
		f, err := stores[0].Facts.Facts(t.Context(), fleet.Certname(fmt.Sprintf("n%d", n)))
		if err != nil {
			t.Fatal(err)
		}
		sameRows(t, stores[0], f)
	}
}

func TestUncleanEndIsChecked(t *testing.T) {
	t.Parallel()
	path := sqlitePath(t)
	if err := os.WriteFile(path+".lock", []byte(inUse), 0o600); err != nil {
		t.Fatal(err)
	}
	said := runUntil(t, Config{Path: path}, "the database is whole")
	if len(said) != 2 {
		t.Errorf("the log says %q", said)
	}
	s := openTest(t, Config{Path: path})
	if !s.file.clean {
		t.Error("a closed database counts as left open")
	}
}

// runUntil runs a store until it logs message, and returns what it logged.
func runUntil(t *testing.T, config Config, message string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &recorder{stop: message, cancel: cancel}
	s, err := Open(ctx, config, slog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return log.said
}

// recorder is a slog.Handler that keeps messages.
type recorder struct {
	slog.Handler
	stop   string
	cancel func()
	said   []string
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.said = append(r.said, record.Message)
	if record.Message == r.stop {
		r.cancel()
	}
	return nil
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

// sameRows compares the rows of a node's facts with its document.
func sameRows(t interface {
	Helper()
	Errorf(string, ...any)
	Context() context.Context
}, s *Store, f inventory.FactSet,
) {
	t.Helper()
	leaves, err := facts.Flatten(f.Values)
	if err != nil {
		t.Errorf("%v", err)
	}
	want := map[string]facts.Leaf{}
	for _, leaf := range leaves {
		want[leaf.Path] = leaf
	}
	rows, err := collect(t.Context(), s.reads, func(row scanner) (l facts.Leaf, err error) {
		err = row.Scan(&l.Path, &l.Kind, &l.Text)
		return l, err
	}, `SELECT p.path, f.kind, f.value FROM nodes n JOIN facts f ON f.node_id = n.id JOIN fact_paths p ON p.id = f.path_id WHERE n.certname = $1`, f.Certname)
	if err != nil {
		t.Errorf("%v", err)
	}
	got := map[string]facts.Leaf{}
	for _, leaf := range rows {
		got[leaf.Path] = leaf
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows differ from the document (-document +rows):\n%s", diff)
	}
}

func TestFactRowsFollowTheDocument(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		rapid.Check(t, func(t *rapid.T) {
			node := fleet.Certname(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"))
			values := []byte(drawObject(t, 3))
			stored, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Values: values})
			if err != nil {
				t.Fatal(err)
			}
			sameRows(t, s, stored)
		})
	})
}

// drawObject draws a JSON object with few keys, so that draws overlap.
func drawObject(t *rapid.T, depth int) string {
	var members []string
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c.d", `e\"`}), 0, 3, rapid.ID).Draw(t, "keys") {
		members = append(members, `"`+key+`":`+drawValue(t, depth-1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func drawValue(t *rapid.T, depth int) string {
	kinds := []string{"null", "true", "1", "1.5", `"x"`, `"1"`, "object", "array"}
	if depth == 0 {
		kinds = kinds[:6]
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "object":
		return drawObject(t, depth)
	case "array":
		var list []string
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1))
		}
		return "[" + strings.Join(list, ",") + "]"
	default:
		return kind
	}
}

func TestTidyKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		c := inventory.Catalog{Certname: "a", Digest: "1", CompiledAt: time.Now(), Resources: []inventory.Resource{
			{Type: "File", Title: "/a", Parameters: []byte(`{"ensure":"file"}`)}, {Type: "File", Title: "/b", Parameters: []byte(`{"ensure":"absent"}`)},
		}}
		if err := s.Catalogs.SaveCatalog(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.Digest, c.Resources = "2", c.Resources[1:]
		if err := s.Catalogs.SaveCatalog(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := s.tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := one[int](s.reads.row(t.Context(), "SELECT COUNT(*) FROM resource_parameters")); err != nil || n != 1 {
			t.Errorf("%d parameters are left, %v; want 1", n, err)
		}
	})
}

// A path of facts is there as long as some node has it, and comes back when one has it again.
func TestFactPathsThatNobodyHasAreForgotten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		save := func(node fleet.Certname, values string) {
			t.Helper()
			if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Environment: "production", Values: []byte(values), ReceivedAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		prune := func(want int, left ...string) {
			t.Helper()
			n, err := s.Facts.PruneFactPaths(t.Context())
			if err != nil || n != want {
				t.Errorf("%d paths were pruned, %v; want %d", n, err, want)
			}
			paths, err := collect(t.Context(), s.reads, one[string], "SELECT path FROM fact_paths ORDER BY path")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(left, paths); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		}
		save("a", `{"kept":1,"shared":"x","gone":true}`)
		save("b", `{"shared":"y"}`)
		prune(0, "gone", "kept", "shared")
		save("a", `{"kept":1}`)
		prune(1, "kept", "shared")
		save("b", `{}`)
		prune(1, "kept")
		save("b", `{"gone":"again","shared":2}`)
		prune(0, "gone", "kept", "shared")
		leaves, err := s.Facts.FactLeaves(t.Context(), []fleet.Certname{"b"}, []string{"gone", "shared"})
		if err != nil || len(leaves["b"]) != 2 {
			t.Errorf("b has %+v, %v; want both facts", leaves, err)
		}
	})
}

// Who writes a fact while its path is pruned has the fact afterwards, with a path.
func TestFactPathsArePrunedBesideWriters(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		const rounds = 40
		var writers errgroup.Group
		for _, node := range []fleet.Certname{"a", "b", "c"} {
			writers.Go(func() error {
				for i := range 2*rounds + 1 {
					values := `{"name":"x"}`
					if i%2 == 0 {
						values = fmt.Sprintf(`{"name":"x","comes":%d,"and":{"goes":"%d"}}`, i, i)
					}
					if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Environment: "production", Values: []byte(values), ReceivedAt: time.Now()}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for range rounds {
			if _, err := s.Facts.PruneFactPaths(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := writers.Wait(); err != nil {
			t.Fatal(err)
		}
		orphans, err := one[int](s.reads.row(t.Context(), "SELECT COUNT(*) FROM facts f WHERE NOT EXISTS (SELECT 1 FROM fact_paths p WHERE p.id = f.path_id)"))
		if err != nil || orphans != 0 {
			t.Errorf("%d facts have no path, %v", orphans, err)
		}
		leaves, err := s.Facts.FactLeaves(t.Context(), []fleet.Certname{"a", "b", "c"}, []string{"comes", "and.goes"})
		for _, node := range []fleet.Certname{"a", "b", "c"} {
			if err != nil || len(leaves[node]) != 2 {
				t.Errorf("%s has %+v, %v; want two facts", node, leaves[node], err)
			}
		}
	})
}
