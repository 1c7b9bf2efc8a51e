package spool

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/orders/orderstest"
	"github.com/tutti-project/tutti/internal/fault"
)

var quiet = slog.New(slog.DiscardHandler)

func open(t *testing.T, dir string) *Spool {
	t.Helper()
	s, err := Open(dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	orderstest.RunSpool(t, func(t *testing.T) orderstest.Disk {
		t.Helper()
		dir := t.TempDir()
		s := open(t, dir)
		return orderstest.Disk{
			Spool: s,
			Restart: func() orders.Spool {
				_ = s.Close()
				return open(t, dir)
			},
			Spoil: func(id string) {
				if err := os.WriteFile(filepath.Join(dir, id, "metadata"), []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

var someRecord = orders.Record{
	Transaction: "t1", Requester: "pcp:///server", RequestID: "1-1-1-1-1", Module: "task", Action: "run", Notify: true,
	Start: time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC), Status: orders.Running,
}

// The layout is the original's.
func TestLayout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	place, err := s.Begin(someRecord)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"requester":"pcp:///server","module":"task","action":"run","request_params":"{}","transaction_id":"t1","request_id":"1-1-1-1-1","notify_outcome":true,"start":"2026-01-31T12:00:00.123456Z","status":"running","delivered":false}` + "\n"
	got, err := os.ReadFile(filepath.Join(dir, "t1", "metadata"))
	if err != nil || string(got) != want {
		t.Errorf("metadata: %v\n%s\nwant\n%s", err, got, want)
	}
	if info, err := os.Stat(place); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the directory: %v %v", info, err)
	}
	for name, content := range map[string]string{"pid": "1\n", "stdout": "x", "exitcode": "7\n"} {
		if err := os.WriteFile(filepath.Join(place, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := s.Output("t1")
	if err != nil || o.Exit == nil || *o.Exit != 7 || string(o.Stdout) != "x" || !o.Begun {
		t.Errorf("output %+v, %v", o, err)
	}
}

func TestExitCodeThatIsCutOff(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	place, err := s.Begin(someRecord)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "exitcode"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Output("t1"); err != nil || o.Exit != nil {
		t.Errorf("an empty exit code is %v, %v", o.Exit, err)
	}
}

func TestFilesGoWithTheEnd(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	place, err := s.Begin(someRecord)
	if err != nil {
		t.Fatal(err)
	}
	extra := filepath.Join(place, "temp_task_1", "module", "files")
	if err := os.MkdirAll(extra, 0o750); err != nil {
		t.Fatal(err)
	}
	over := someRecord
	over.Status = orders.Success
	if err := s.Save(over); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(place)
	if err != nil || len(left) != 1 || left[0].Name() != "metadata" {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir)
	_, err := Open(dir, quiet)
	if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "another agent uses") {
		t.Errorf("a second agent gets %v", err)
	}
}

// What was half made when the agent was killed is not there.
func TestHalfMadeTransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, newPrefix+"1"), 0o750); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if left, err := filepath.Glob(filepath.Join(dir, "*-*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// A full disk is named, and leaves nothing half done.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := s.Begin(someRecord); err != nil {
		t.Fatal(err)
	}
	s.write = func(path string, content []byte) error {
		_ = os.WriteFile(path+".half", content[:len(content)/2], 0o600)
		return fmt.Errorf("write %s: %w", path, syscall.ENOSPC)
	}
	isFullDisk := func(what string, err error) {
		if fault.Of(err) != fault.Unavailable || fault.Detail(err) != "the disk of the spool "+dir+" is full: make room there" {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := someRecord
	other.Transaction = "t2"
	_, err := s.Begin(other)
	isFullDisk("begin", err)
	exit := 0
	isFullDisk("write", s.Write("t1", orders.Output{Exit: &exit}))
	changed := someRecord
	changed.Status = orders.Success
	isFullDisk("save", s.Save(changed))
	s.write = replace
	if r, err := s.Load("t1"); err != nil || r.Status != orders.Running {
		t.Errorf("the old record is gone: %+v %v", r, err)
	}
	if _, err := s.Begin(other); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"start":"2026-01-31T12:00:00.123456Z","status":"running","transaction_id":"t1"}`))
	f.Add([]byte(`{"start":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decode("t1", text)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("kind %v", fault.Of(err))
			}
			return
		}
		again, err := decode("t1", encode(r))
		if err != nil || again.Status != r.Status || again.Error != r.Error || again.Start.Sub(r.Start).Abs() > time.Microsecond {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}
