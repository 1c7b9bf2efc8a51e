package local_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/local"
)

// xor is a seal whose texts do not read as what they are.
type xor byte

func (x xor) Seal(b []byte) ([]byte, error) { return x.turn(append([]byte("sealed"), b...)), nil }

func (x xor) Open(b []byte) ([]byte, error) {
	plain, sealed := strings.CutPrefix(string(x.turn(b)), "sealed")
	if !sealed {
		return nil, errors.New("it was sealed with another key")
	}
	return []byte(plain), nil
}

func (x xor) turn(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = b[i] ^ byte(x)
	}
	return out
}

func open(t *testing.T, path string, most int64) *local.Store {
	t.Helper()
	s, err := local.Open(path, local.Config{MostBytes: most, Seal: xor(7)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// A full queue refuses in words, also who comes at the same time, and takes again when there is room.
func TestAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "q"), 20_000)
	var all sync.WaitGroup
	var mu sync.Mutex
	taken, refused := 0, 0
	for i := range 30 {
		all.Go(func() {
			err := s.Add(near.Piece{Kind: near.Report, Node: "a.test", At: time.Unix(int64(i), 0), Body: noise(1000)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				taken++
			case fault.Of(err) == fault.Unavailable && strings.Contains(fault.Detail(err), "near_queue_bytes") && fault.RetryAfter(err) > 0:
				refused++
			default:
				t.Errorf("refused with %v", err)
			}
		})
	}
	all.Wait()
	if taken < 10 || taken > 20 || refused != 30-taken {
		t.Errorf("%d were taken, %d refused", taken, refused)
	}
	load := s.Load()
	if load.Pieces != taken || load.Bytes > 20_000 {
		t.Errorf("queued: %+v", load)
	}
	some, err := s.Next(0, 3)
	if err != nil || len(some) != 3 {
		t.Fatalf("%v, %v", some, err)
	}
	if err := s.Remove([]uint64{some[0].Number, some[1].Number, some[0].Number}); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(near.Piece{Kind: near.Report, Node: "a.test", Body: noise(1000)}); err != nil {
		t.Error(err)
	}
}

// What was added is there after a start, in order, with numbers that nobody had, and it does not lie there readable.
func TestWhatIsQueuedSurvives(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "q")
	s := open(t, path, 1<<20)
	for i := range 5 {
		if err := s.Add(near.Piece{
			Kind: near.Facts, Node: "node-with-a-name.test", At: time.Unix(int64(i), 0), Body: fmt.Append(nil, "a secret text ", i),
		}); err != nil {
			t.Fatal(err)
		}
	}
	some, err := s.Next(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	last := some[4].Number
	if err := errors.Join(s.Remove([]uint64{last}), s.SetAside(some[0].Number, "why"), s.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(content), "secret text") || strings.Contains(string(content), "node-with-a-name") {
		t.Errorf("the file can be read by everybody who has it: %v", err)
	}
	if mode, err := os.Stat(path); err != nil || mode.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", mode.Mode(), err)
	}
	s = open(t, path, 1<<20)
	if load := s.Load(); load.Pieces != 3 || load.Aside != 1 || !load.Oldest.Equal(time.Unix(1, 0)) || load.Bytes <= 0 {
		t.Errorf("after a start: %+v", load)
	}
	if err := s.Add(near.Piece{Kind: near.Facts, Node: "a.test"}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Next(some[1].Number, 10)
	if err != nil || len(again) != 3 || string(again[0].Body) != "a secret text 2" || again[2].Number <= last {
		t.Errorf("after a start: %v, %v", again, err)
	}
}

// A file of another server, or a damaged one, is refused at the start: it may hold what was acknowledged.
func TestAFileThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "q")
	s := open(t, path, 1<<20)
	if err := errors.Join(s.Add(near.Piece{Kind: near.Facts, Node: "a.test"}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Open(path, local.Config{MostBytes: 1 << 20, Seal: xor(8)}); err == nil {
		t.Error("another key opens it")
	}
	used := open(t, path, 1<<20)
	if _, err := local.Open(path, local.Config{MostBytes: 1 << 20, Seal: xor(7)}); fault.Of(err) != fault.Conflict ||
		strings.Contains(err.Error(), "move the file away") {
		t.Errorf("a file that is used: %v", err)
	}
	if err := used.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("damaged", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Open(path, local.Config{MostBytes: 1 << 20, Seal: xor(7)}); fault.Of(err) != fault.Invalid {
		t.Errorf("a damaged file: %v", err)
	}
}

// What is not in the queue is not counted as set aside.
func TestWhatIsNotQueuedIsNotSetAside(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "q"), 1<<20)
	if err := s.Add(near.Piece{Kind: near.Facts, Node: "a.test"}); err != nil {
		t.Fatal(err)
	}
	some, err := s.Next(0, 1)
	if err != nil || len(some) != 1 {
		t.Fatalf("%v, %v", some, err)
	}
	number := some[0].Number
	if err := errors.Join(s.SetAside(number, "why"), s.SetAside(number, "why"), s.SetAside(number+7, "why")); err != nil {
		t.Fatal(err)
	}
	if load := s.Load(); load.Aside != 1 || load.Pieces != 0 || load.Bytes != 0 {
		t.Errorf("one was set aside: %+v", load)
	}
}

// What is delivered as soon as it is queued is not counted as waiting afterwards.
func TestWhatIsRemovedAtOnceDoesNotCount(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "q"), 1<<20)
	var adding sync.WaitGroup
	for range 8 {
		adding.Go(func() {
			for range 25 {
				if err := s.Add(near.Piece{Kind: near.Facts, Node: "a.test"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for left := 200; left > 0; {
		some, err := s.Next(0, 10)
		if err != nil {
			t.Fatal(err)
		}
		numbers := make([]uint64, len(some))
		for i, p := range some {
			numbers[i] = p.Number
		}
		if err := s.Remove(numbers); err != nil {
			t.Fatal(err)
		}
		left -= len(some)
	}
	adding.Wait()
	if load := s.Load(); load != (near.Load{}) {
		t.Errorf("nothing waits: %+v", load)
	}
}

// A full disk refuses before anything is written.
func TestAFullDiskRefuses(t *testing.T) {
	t.Parallel()
	full := fault.Later(time.Second, "the disk is full")
	s, err := local.Open(filepath.Join(t.TempDir(), "q"), local.Config{MostBytes: 1 << 20, Seal: xor(7), Admit: func() error { return full }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Add(near.Piece{Kind: near.Facts, Node: "a.test"}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := s.Keep(near.Kept{Node: "a.test"}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}
