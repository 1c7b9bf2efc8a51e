package process_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/orders/orderstest"
	"github.com/tutti-project/tutti/internal/agent/process"
	"github.com/tutti-project/tutti/internal/agent/puppetrun"
	"github.com/tutti-project/tutti/internal/agent/spool"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
	"github.com/tutti-project/tutti/internal/sim/machine"
)

// The test binary is its own watcher, the program that does Puppet runs, and the agent
// that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "puppet" {
		os.Exit(puppetrun.Main(context.Background(), os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) == 2 && os.Args[1] == "choria" {
		_, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) // as the binary's main does
		defer stop()
		if err := modules.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && (os.Args[1] == "watch" || os.Args[1] == "agent") {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		var err error
		if os.Args[1] == "watch" {
			err = process.Watch(ctx, os.Args[2], os.Stdin, os.Stdout)
		} else {
			err = beAgent(ctx, os.Args[2])
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var quiet = slog.New(slog.DiscardHandler)

func newRunner(change func(*process.Config)) *process.Runner {
	cfg := process.Config{Watcher: []string{os.Args[0], "watch"}, Grace: 500 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	return process.New(cfg)
}

func openSpool(t *testing.T, dir string) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// script is a shell program that ends so.
func script(e machine.Ending) orders.Command {
	var text strings.Builder
	if e.Deaf {
		text.WriteString("trap '' TERM\n")
	}
	fmt.Fprintf(&text, "printf '%%s' %s; printf '%%s' %s >&2\n", quoted(e.Stdout), quoted(e.Stderr))
	if e.After > 0 {
		fmt.Fprintf(&text, "sleep %f\n", e.After.Seconds()) // ignores SIGTERM too, if the shell does
	}
	fmt.Fprintf(&text, "exit %d\n", e.Exit)
	return orders.Command{Path: "/bin/sh", Args: []string{"-c", text.String()}}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func TestConformance(t *testing.T) {
	t.Parallel()
	orderstest.RunRunner(t, func(t *testing.T) orderstest.Programs {
		t.Helper()
		dir := t.TempDir()
		s := openSpool(t, dir)
		return orderstest.Programs{
			Spool: s, Runner: newRunner(nil), Command: script,
			Begun: func(t *testing.T, place string) {
				t.Helper()
				waitUntil(t, "the program wrote something", func() bool {
					info, err := os.Stat(filepath.Join(place, "stdout"))
					return err == nil && info.Size() > 0
				})
			},
			Restart: func() (orders.Spool, orders.Runner) {
				_ = s.Close()
				return openSpool(t, dir), newRunner(nil)
			},
		}
	})
}

// run runs one program to its end.
func run(t *testing.T, r *process.Runner, c orders.Command) orders.Output {
	t.Helper()
	s, place := begun(t)
	return runAt(t, r, s, place, c)
}

func runAt(t *testing.T, r *process.Runner, s *spool.Spool, place string, c orders.Command) orders.Output {
	t.Helper()
	if err := r.Start(t.Context(), place, c); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	o, err := s.Output("t1")
	if err != nil || o.Exit == nil {
		t.Fatalf("it left %+v, %v", o, err)
	}
	return o
}

func begun(t *testing.T) (s *spool.Spool, place string) {
	t.Helper()
	s = openSpool(t, t.TempDir())
	place, err := s.Begin(orders.Record{Transaction: "t1", Start: time.Now(), Status: orders.Running})
	if err != nil {
		t.Fatal(err)
	}
	return s, place
}

func sh(text string) orders.Command {
	return orders.Command{Path: "/bin/sh", Args: []string{"-c", text}}
}

func TestProgramThatCannotBeRun(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/nobody/here", plain} {
		o := run(t, newRunner(nil), orders.Command{Path: path})
		if *o.Exit != 127 || !strings.HasPrefix(string(o.Stderr), "Executable '"+path+"' failed to run: ") {
			t.Errorf("exit %d, %s", *o.Exit, o.Stderr)
		}
	}
}

// A process that was started while the agent wrote the file may hold it open a moment longer.
func TestProgramThatIsBusy(t *testing.T) {
	t.Parallel()
	path := programtest.Write(t, filepath.Join(t.TempDir(), "busy"), "#!/bin/sh\necho ran\n")
	held, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Close() })
	if o := run(t, newRunner(nil), orders.Command{Path: path}); string(o.Stdout) != "ran\n" {
		t.Errorf("exit %d, %s", *o.Exit, o.Stderr)
	}
}

func TestInputAndEnvironment(t *testing.T) {
	t.Parallel()
	c := sh(`printf '%s|%s|%s|' "$PT_name" "$(pwd)" "$#"; cat; tr '\0' '\n' < /proc/$PPID/cmdline >&2`)
	c.Env, c.Input = []string{"PT_name=sécret\nvalue"}, []byte("in\x00word")
	o := run(t, newRunner(nil), c)
	if got := string(o.Stdout); got != "sécret\nvalue|/|0|in\x00word" {
		t.Errorf("the program saw %q", got)
	}
	if strings.Contains(string(o.Stderr), "cret") || strings.Contains(string(o.Stderr), "word") {
		t.Errorf("the watcher's arguments: %s", o.Stderr)
	}
	if o := run(t, newRunner(nil), sh("cat; echo end")); string(o.Stdout) != "end\n" {
		t.Errorf("without input: %q", o.Stdout)
	}
}

// A program that does not read its input, more than a pipe holds, is no error.
func TestProgramThatDoesNotRead(t *testing.T) {
	t.Parallel()
	c := sh("exec <&-; echo fine")
	c.Input = make([]byte, 4<<20)
	if o := run(t, newRunner(nil), c); *o.Exit != 0 || string(o.Stdout) != "fine\n" {
		t.Errorf("exit %d, %q, %q", *o.Exit, o.Stdout, o.Stderr)
	}
}

func TestTooMuchOutput(t *testing.T) {
	t.Parallel()
	r := newRunner(func(c *process.Config) { c.MaxOutputBytes = 1000 })
	s, place := begun(t)
	kept := "until test -s " + place + "/stderr; do sleep 0.01; done; " // the streams are read side by side
	o := runAt(t, r, s, place, sh("printf 'before\n' >&2; "+kept+"head -c 3000000 /dev/zero | tr '\\0' x; echo after >&2; exit 3"))
	if *o.Exit != 3 || len(o.Stdout) != 1000-len("before\n") {
		t.Errorf("exit %d, %d bytes", *o.Exit, len(o.Stdout))
	}
	want := "before\ntutti: the rest of stdout was cut off: at most 1000 bytes of output are kept\n" +
		"tutti: the rest of stderr was cut off: at most 1000 bytes of output are kept\n"
	if got := string(o.Stderr); got != want {
		t.Errorf("stderr is\n%s\nwant\n%s", got, want)
	}
}

// What a program leaves in the background stays, and does not hold up its end.
func TestDaemonStays(t *testing.T) {
	t.Parallel()
	o := run(t, newRunner(nil), sh("sleep 60 & echo $!"))
	pid, err := strconv.Atoi(strings.TrimSpace(string(o.Stdout)))
	if err != nil || *o.Exit != 0 {
		t.Fatal(err, *o.Exit)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon is gone: %v", err)
	}
}

// A child of the program that ignores SIGTERM dies with the group.
func TestDeafGrandchild(t *testing.T) {
	t.Parallel()
	s, place := begun(t)
	r := newRunner(nil)
	pidFile := filepath.Join(t.TempDir(), "pid")
	if err := r.Start(t.Context(), place,
		sh(`sh -c 'trap "" TERM; echo $$ > `+pidFile+`.new; mv `+pidFile+`.new `+pidFile+`; while :; do sleep 1; done' & wait`)); err != nil {
		t.Fatal(err)
	}
	pid := waitForNumber(t, pidFile)
	if err := r.Stop(place); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Output("t1"); err != nil || *o.Exit != 143 || !strings.Contains(string(o.Stderr), "tutti: ended because it was cancelled\n") {
		t.Errorf("it left %+v, %v", o, err)
	}
	waitUntil(t, "the grandchild is gone", func() bool { return gone(pid) })
}

// gone says whether a process has ended; who ended but was not waited for has, too.
func gone(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return strings.HasPrefix(state, "Z")
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("a minute passed before %s", what)
		}
	}
}

func waitForNumber(t *testing.T, path string) int {
	t.Helper()
	number := 0
	waitUntil(t, path+" is there", func() bool {
		text, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		number, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return number
}

func TestWatcherThatCannotStart(t *testing.T) {
	t.Parallel()
	_, place := begun(t)
	for want, watcher := range map[string][]string{
		"no such file": {"/nobody/here"},
		"the watcher ended at once: EOF\nout of order": {"/bin/sh", "-c", "echo out of order >&2"},
		"no space": {"/bin/sh", "-c", "echo no space left"},
	} {
		r := newRunner(func(c *process.Config) { c.Watcher = watcher })
		err := r.Start(t.Context(), place, sh("true"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if r.Alive(place) {
			t.Error("something is alive")
		}
	}
}

// A watcher that gets half an order begins nothing.
func TestHalfAnOrder(t *testing.T) {
	t.Parallel()
	s, place := begun(t)
	err := process.Watch(t.Context(), place, strings.NewReader(`{"path":"/bin/touch","args":["`+place+`/ran"]`), io.Discard)
	if err == nil {
		t.Error("it was taken as whole")
	}
	if o, err := s.Output("t1"); err != nil || o.Begun || o.Exit != nil {
		t.Errorf("it left %+v, %v", o, err)
	}
	if _, err := os.Lstat(place + "/ran"); err == nil {
		t.Error("it was run")
	}
}

// full puts a full disk in the place of a file.
func full(t *testing.T, place, name string) {
	t.Helper()
	if err := os.Symlink("/dev/full", filepath.Join(place, name)); err != nil {
		t.Fatal(err)
	}
}

// There is no room for an exit code: nothing is run.
func TestDiskThatIsFull(t *testing.T) {
	t.Parallel()
	s, place := begun(t)
	full(t, place, "exitcode.new")
	err := newRunner(nil).Start(t.Context(), place, sh("touch "+place+"/ran"))
	if fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "no space left on device") {
		t.Errorf("got %v", err)
	}
	if o, err := s.Output("t1"); err != nil || o.Begun || o.Exit != nil {
		t.Errorf("it left %+v, %v", o, err)
	}
	if _, err := os.Lstat(place + "/ran"); err == nil {
		t.Error("it was run")
	}
}

// The disk fills while a program runs: it goes on, and what is missing is said.
func TestDiskThatFills(t *testing.T) {
	t.Parallel()
	s, place := begun(t)
	full(t, place, "stdout")
	r := newRunner(nil)
	if err := r.Start(t.Context(), place, sh("echo out; echo err >&2; touch "+place+"/ran; exit 3")); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(place + "/ran"); err != nil {
		t.Errorf("the program did not go on: %v", err)
	}
	if err := os.Remove(filepath.Join(place, "stdout")); err != nil {
		t.Fatal(err)
	}
	o, err := s.Output("t1")
	want := "err\ntutti: the rest of stdout was not kept: write " + place + "/stdout: no space left on device\n"
	if err != nil || *o.Exit != 3 || string(o.Stderr) != want {
		t.Errorf("it left %d, %s, %v", *o.Exit, o.Stderr, err)
	}
}
