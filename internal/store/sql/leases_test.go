package sql

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/lease/leasetest"
)

// leasesPart is Leases under a name that is none of its methods'.
type leasesPart = Leases

// fencedStore is leases, and writes under them.
type fencedStore struct{ *leasesPart }

// Write implements leasetest.World.
func (s fencedStore) Write(ctx context.Context, act func()) error {
	return s.write(ctx, func(context.Context, querier) error {
		act()
		return nil
	})
}

func TestLeases(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		leasetest.Run(t, func(t *testing.T) leasetest.World {
			t.Helper()
			return fencedStore{open(t).Leases}
		})
	})
}

// Every method of every part writes behind the fence of its context.
func TestEveryWriteIsFenced(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		g, _, err := s.Leases.AcquireLease(t.Context(), "jobs", "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx := lease.With(t.Context(), g, nil)
		if err := s.BlobMarks.Adopt(ctx, marked("before")); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Leases.AcquireLease(t.Context(), "jobs", "b", time.Hour); !ok {
			t.Fatal(err)
		}
		wantKind(t, s.BlobMarks.Adopt(ctx, marked("after")), fault.Unavailable)
		wantKind(t, s.Versions.write(context.WithoutCancel(ctx), func(context.Context, querier) error { return nil }), fault.Unavailable)
		if got := adopted(t, s); got != 1 {
			t.Errorf("%d rows, want the one from before", got)
		}
	})
}

func marked(text string) []cas.Arrival {
	return []cas.Arrival{{Digest: fleet.DigestOf([]byte(text)), Bytes: 1}}
}

func adopted(t *testing.T, s *Store) int64 {
	t.Helper()
	n, err := one[int64](s.reads.row(t.Context(), "SELECT count(*) FROM blob_marks"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A server on SQLite watches its claim, too: that must not take its own leases from it.
func TestWatchingTheClaimOfAFileFreesNothing(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Path: filepath.Join(t.TempDir(), "tutti.db")})
	check(t, s.Claim(t.Context(), Claim{}))
	g, _, err := s.Leases.AcquireLease(t.Context(), "jobs", "a", time.Hour)
	check(t, err)
	check(t, s.renewClaim(t.Context()))
	lost, err := s.Leases.RenewLeases(t.Context(), []lease.Grant{g}, time.Hour)
	check(t, err)
	if len(lost) > 0 {
		t.Errorf("%+v is lost", lost)
	}
}

// A server that opens a SQLite file is its only one: it need not wait for the leases of the one before.
func TestAClaimFreesTheLeasesOfAFile(t *testing.T) {
	t.Parallel()
	s := engines["sqlite"](t)
	old, _, err := s.Leases.AcquireLease(t.Context(), "jobs", "a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(t.Context(), Claim{}); err != nil {
		t.Fatal(err)
	}
	g, ok, err := s.Leases.AcquireLease(t.Context(), "jobs", "b", time.Hour)
	if err != nil || !ok || g.Token <= old.Token {
		t.Errorf("after the claim: %+v, %t, %v", g, ok, err)
	}
}

// Restored records have the leases of a server that is no more, for days: nothing would be done once.
func TestRestoredRecordsHaveNoHolders(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		if _, ok, err := s.Leases.AcquireLease(t.Context(), "jobs", "before", lease.Sole().TTL); !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		if err := s.Leases.Free(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g, ok, err := s.Leases.AcquireLease(t.Context(), "jobs", "after", time.Minute); !ok || err != nil || g.Token != 2 {
			t.Errorf("%+v, %t, %v", g, ok, err)
		}
	})
}

// While a write is under way its lease can be renewed, and nobody else gets it, however late it is.
func TestATakeoverWaitsForAWriteAndARenewalDoesNot(t *testing.T) {
	t.Parallel()
	s := engines["postgres"](t)
	over, _, err := s.Leases.AcquireLease(t.Context(), "jobs", "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	inside, leave, wrote := make(chan bool), make(chan bool), make(chan error, 1)
	write := func(g lease.Grant) {
		wrote <- s.write(lease.With(t.Context(), g, nil), func(context.Context, querier) error {
			inside <- true
			<-leave
			return nil
		})
	}
	go write(over)
	<-inside
	asked := make(chan lease.Grant, 1)
	go func() {
		g, ok, err := s.Leases.AcquireLease(t.Context(), "jobs", "b", time.Hour)
		if !ok {
			t.Error(err)
		}
		asked <- g
	}()
	waitsForLock(t)
	leave <- true
	if err := <-wrote; err != nil {
		t.Errorf("who was there first: %v", err)
	}
	g := <-asked
	go write(g)
	<-inside
	if lost, err := s.Leases.RenewLeases(t.Context(), []lease.Grant{g}, time.Hour); err != nil || len(lost) > 0 {
		t.Errorf("lost %v, %v", lost, err)
	}
	if _, ok, err := s.Leases.AcquireLease(t.Context(), "jobs", "c", time.Hour); ok || err != nil {
		t.Errorf("who finds it held: %t, %v", ok, err)
	}
	leave <- true
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// waitsForLock returns when a session that takes over a lease waits for another one.
func waitsForLock(t *testing.T) {
	t.Helper()
	for {
		var n int
		err := postgres.admin.QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE leases SET holder%'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// quick is lease.Shared for those who wait.
var quick = lease.Timing{TTL: time.Second, Renew: 200 * time.Millisecond, Stop: 600 * time.Millisecond, Poll: 100 * time.Millisecond}

// childLeases is a server that writes under a lease as fast as it can, and says what was accepted and what was refused. In each write
// it says so, and waits a moment.
func childLeases(ctx context.Context, url string) {
	s, err := Open(ctx, Config{URL: url}, slog.New(slog.DiscardHandler))
	if err == nil {
		k := lease.NewKeeper(s.Leases, "child", quick, slog.New(slog.DiscardHandler))
		go func() { _ = k.Run(ctx) }()
		err = k.Once("jobs", func(ctx context.Context) error {
			ctx = context.WithoutCancel(ctx) // it does not hear that it lost
			for {
				err := s.write(ctx, func(ctx context.Context, q querier) error {
					fmt.Println("writing")
					<-time.After(time.Millisecond)
					_, err := q.exec(ctx, "UPDATE blob_marks SET bytes = bytes + 1")
					return err
				})
				fmt.Println("wrote", err == nil, fault.Of(err))
			}
		})(ctx)
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// Another server goes on where one was killed, or frozen, amid its writes. One that thaws writes nothing any more.
func TestALeaseIsTakenOverFromAProcess(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := postgres.migrated(t)
			s := openTest(t, Config{URL: url})
			if err := s.BlobMarks.Adopt(t.Context(), marked("x")); err != nil {
				t.Fatal(err)
			}
			child, say := startChild(t, url, "leases")
			await(t, say, "writing", 50)
			if err := child.Signal(signal); err != nil {
				t.Fatal(err)
			}
			k := lease.NewKeeper(s.Leases, "parent", quick, slog.New(slog.DiscardHandler))
			var count int64
			err := k.Once("jobs", func(ctx context.Context) error {
				err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
					count, err = one[int64](q.row(ctx, "UPDATE blob_marks SET bytes = bytes + 1 RETURNING bytes"))
					return err
				})
				if err != nil || signal == syscall.SIGKILL {
					return err
				}
				if err := child.Signal(syscall.SIGCONT); err != nil {
					return err
				}
				await(t, say, "wrote false", 3) // the one that was under way, and what came after
				return nil
			})(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			after, err := one[int64](s.reads.row(t.Context(), "SELECT bytes FROM blob_marks"))
			if err != nil || after != count {
				t.Errorf("%d writes, %v; there were %d when the parent had written", after, err, count)
			}
		})
	}
}

// startChild starts this program as a server of its own; it ends with the test.
func startChild(t *testing.T, dir, what string) (*os.Process, *bufio.Scanner) {
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
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process, bufio.NewScanner(out)
}

// await reads until a line that begins so came so many times.
func await(t *testing.T, lines *bufio.Scanner, begins string, times int) {
	t.Helper()
	for times > 0 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "error") {
			t.Fatal(lines.Text())
		}
		if strings.HasPrefix(lines.Text(), begins) {
			times--
		}
	}
	if times > 0 {
		t.Fatalf("the child ended before it said %q", begins)
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		leasetest.RunRoll(t, func(t *testing.T) lease.Roll {
			t.Helper()
			return open(t).Leases
		})
	})
}
