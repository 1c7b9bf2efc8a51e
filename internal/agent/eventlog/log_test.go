//go:build unix

package eventlog

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/tutti-project/tutti/internal/agent/events/eventstest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// run writes as the hook of Puppet does.
type run struct {
	t     *testing.T
	dir   string
	lock  *os.File
	file  *os.File
	lines int
	files int
}

func begin(t *testing.T, root, name string) *run {
	t.Helper()
	hidden := filepath.Join(root, "."+name)
	if err := os.Mkdir(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(hidden, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, dir: filepath.Join(root, name), lock: lock}
	if err := os.Rename(hidden, r.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Over(); _ = r.file.Close() })
	return r
}

func (r *run) Write(events ...pxp.RunEvent) {
	r.t.Helper()
	for _, e := range events {
		r.line(string(pxp.Data(e)) + "\n")
	}
}

func (r *run) line(text string) {
	r.t.Helper()
	if r.file == nil || r.lines == 1000 {
		if r.file != nil {
			_ = r.file.Close()
		}
		r.files++
		r.lines = 0
		var err error
		if r.file, err = os.Create(filepath.Join(r.dir, fmt.Sprintf("%06d.jsonl", r.files))); err != nil {
			r.t.Fatal(err)
		}
	}
	if _, err := r.file.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
	r.lines++
}

func (r *run) Over() { _ = r.lock.Close() }

func newLog(t *testing.T, limits Limits) (*Log, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "events")
	l, err := Open(dir, limits, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = l.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait(); _ = l.Close() })
	return l, dir
}

func TestLog(t *testing.T) {
	t.Parallel()
	eventstest.RunLog(t, func(t *testing.T) eventstest.Backend {
		t.Helper()
		l, dir := newLog(t, DefaultLimits())
		return eventstest.Backend{Log: l, Begin: func(name string) eventstest.Writer { return begin(t, dir, name) }}
	})
}

func numbers(t *testing.T, l *Log, name string) (ns []int) {
	t.Helper()
	tail, err := l.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tail.Close() }()
	for {
		events, _, err := tail.Next(100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			ns = append(ns, e.N)
		}
		if len(events) == 0 {
			return ns
		}
	}
}

// What nobody can read counts as lost, and half a line is no line.
func TestDamagedLines(t *testing.T) {
	t.Parallel()
	l, dir := newLog(t, DefaultLimits())
	r := begin(t, dir, "r")
	good := func(n int) string { return fmt.Sprintf(`{"n":%d,"kind":"begin","at":"2026-11-22T01:02:03Z"}`, n) }
	for _, text := range []string{good(1) + "\n", "{\n", "\x00\xff\n", `{"n":0,"kind":"begin"}` + "\n", good(5) + "\n", good(6)} {
		r.line(text)
	}
	if got := fmt.Sprint(numbers(t, l, "r")); got != "[1 5]" {
		t.Errorf("read %s", got)
	}
	r.line("\n")
	if got := fmt.Sprint(numbers(t, l, "r")); got != "[1 5 6]" {
		t.Errorf("read %s", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	l, dir := newLog(t, Limits{MaxRuns: 3, MaxBytes: 300 << 10})
	for i := range 5 {
		r := begin(t, dir, fmt.Sprintf("r%d", i))
		for n := 1; n <= 2500; n++ {
			r.line(fmt.Sprintf(`{"n":%d,"kind":"begin","at":"2026-11-22T01:02:03Z"}`+"\n", n))
		}
		if i != 0 { // the first one goes on
			r.Over()
		}
	}
	runs, err := l.Runs()
	if err != nil || len(runs) != 3 {
		t.Fatal(runs, err)
	}
	for _, name := range runs {
		ns := numbers(t, l, name)
		if len(ns) == 0 || ns[len(ns)-1] != 2500 {
			t.Errorf("of run %s the last file is gone", name)
		}
	}
	var total int64
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			total += info.Size()
		}
	}
	if total > 300<<10 {
		t.Errorf("%d bytes are kept", total)
	}
	if _, err := os.Stat(filepath.Join(dir, "r0")); err != nil {
		t.Errorf("the run that goes on: %v", err)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"n":1,"kind":"begin","at":"2026-11-22T01:02:03Z"}` + "\n"))
	f.Add([]byte(`{"n":9,"kind":"resource","at":"2026-11-22T01:02:03Z","old":[1],"title":"\u0000"}` + "\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := parseLine(line)
		if !ok {
			return
		}
		if _, err := pxp.ParseRunEvents(pxp.Data(pxp.RunEvents{Run: "r", Events: []pxp.RunEvent{e.Fit()}})); err != nil {
			t.Errorf("what was read cannot be sent: %v", err)
		}
	})
}
