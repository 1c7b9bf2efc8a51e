package sql

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// childMain writes until somebody kills it, and says of each write what was acknowledged.
func childMain(dir string) {
	ctx := context.Background()
	if os.Getenv("SQLSTORE_CHILD_WRITES") == "leases" {
		childLeases(ctx, dir)
	}
	s, err := Open(ctx, Config{Path: filepath.Join(dir, "tutti.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	if os.Getenv("SQLSTORE_CHILD_WRITES") == "jobs" {
		childJobs(ctx, s)
	}
	if os.Getenv("SQLSTORE_CHILD_WRITES") == "factqueue" {
		childIntake(ctx, s)
	}
	childInventory(ctx, s)
}

// childInventory saves facts and reports.
func childInventory(ctx context.Context, s *Store) {
	var wg sync.WaitGroup
	var out sync.Mutex
	for worker := range 8 {
		wg.Go(func() {
			node := fleet.Certname(fmt.Sprintf("n%d.example", worker))
			for {
				n := time.Now().UnixNano()
				values := fmt.Appendf(nil, `{"n":%d,"static":{"a":[1,2,3]}}`, n)
				_, _, err := s.Facts.SaveFacts(ctx, inventory.FactSet{Certname: node, Environment: "production", Values: values, ReceivedAt: time.Now()})
				say(&out, err, "facts %s %d\n", node, n)
				r := sampleReport(node, 5, n)
				say(&out, s.Reports.SaveReport(ctx, r), "report %s\n", r.ID)
			}
		})
	}
	wg.Wait()
}

func say(mu *sync.Mutex, err error, format string, args ...any) {
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		format, args = "error %v\n", []any{err}
	}
	fmt.Printf(format, args...)
}

func TestKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	facts, reports := map[string]int64{}, map[string]bool{}
	for range 5 {
		killChild(t, "inventory", dir, 20+rand.IntN(600), func(line string) {
			var node, id string
			var n int64
			if _, err := fmt.Sscanf(line, "facts %s %d", &node, &n); err == nil {
				facts[node] = n
			} else if _, err := fmt.Sscanf(line, "report %s", &id); err == nil {
				reports[id] = true
			} else {
				t.Errorf("the child said %q", line)
			}
		})
		verify(t, dir, facts, reports)
	}
	if len(reports) < 20 {
		t.Errorf("only %d reports were acknowledged", len(reports))
	}
}

// killChild starts a child, hears lines of it and kills it with -9; what it still
// managed to say counts too.
func killChild(t *testing.T, what, dir string, lines int, hear func(string)) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "SQLSTORE_CHILD="+dir, "SQLSTORE_CHILD_WRITES="+what)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	for heard := 1; ; heard++ {
		line, err := reader.ReadString('\n')
		if err != nil {
			break
		}
		hear(strings.TrimSpace(line))
		if heard == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // killed
}

func verify(t *testing.T, dir string, facts map[string]int64, reports map[string]bool) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: filepath.Join(dir, "tutti.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	whole(t, s)
	for id := range reports {
		if _, err := s.Reports.Report(t.Context(), id); err != nil {
			t.Errorf("acknowledged report: %v", err)
		}
	}
	for node, n := range facts {
		f, err := s.Facts.Facts(t.Context(), fleet.Certname(node))
		if err != nil {
			t.Errorf("acknowledged facts: %v", err)
			continue
		}
		var got int64
		if _, err := fmt.Sscanf(string(f.Values), `{"n":%d,`, &got); err != nil || got < n {
			t.Errorf("facts of %s are %s, %d was acknowledged", node, f.Values, n)
		}
		sameRows(t, s, f)
	}
}

// whole checks that the SQLite file is sound.
func whole(t *testing.T, s *Store) {
	t.Helper()
	if result, err := one[string](s.reads.row(t.Context(), "PRAGMA integrity_check")); err != nil || result != "ok" {
		t.Errorf("integrity_check: %q, %v", result, err)
	}
	if _, err := collect(t.Context(), s.reads, func(scanner) (string, error) {
		return "", fmt.Errorf("foreign_key_check found something")
	}, "PRAGMA foreign_key_check"); err != nil {
		t.Error(err)
	}
}
