package sql

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
