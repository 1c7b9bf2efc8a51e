package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// watched is a server that is started again when it ends by itself, as systemd does, unless it was killed on purpose.
type watched struct {
	*server

	mu     sync.Mutex
	wanted bool
	ends   map[string]int // how often it ended by itself, by the last line of its log
}

// watch keeps a server that runs until the story ends.
func watch(t *testing.T, s *server) *watched {
	t.Helper()
	w := &watched{server: s, wanted: true, ends: map[string]int{}}
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				w.look(t)
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		wait.Wait()
	})
	return w
}

func (w *watched) look(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.wanted || w.cmd != nil && !w.gone() {
		return
	}
	if w.cmd != nil {
		lines := strings.Split(strings.TrimSpace(w.logText()), "\n")
		w.ends[lines[len(lines)-1]]++
	}
	if err := w.launch(); err != nil {
		t.Error(err)
	}
}

// die is kill -9, and says whether it ran; it stays dead until it lives.
func (w *watched) die(t *testing.T) bool {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = false
	if w.cmd == nil || w.gone() {
		return false
	}
	if err := w.crash(); err != nil {
		t.Error(err)
	}
	return true
}

// live starts it at once: what comes next may be to kill it.
func (w *watched) live(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	w.wanted = true
	w.cmd = nil // if it is gone, it is so on purpose
	w.mu.Unlock()
	w.look(t)
}

// freeze stops the server and all that it started in the middle of what they do, or lets them go on, and says whether it ran.
func (w *watched) freeze(frozen bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cmd != nil && !w.gone() && freeze(w.cmd.Process.Pid, frozen)
}

// freeze stops a process and all below it, or lets them go on, and says whether the process was there.
func freeze(pid int, frozen bool) bool {
	signal := syscall.SIGCONT
	if frozen {
		signal = syscall.SIGSTOP
	}
	err := syscall.Kill(pid, signal)
	for _, p := range below(pid) {
		_ = syscall.Kill(p.pid, signal)
	}
	return err == nil
}

// runs says whether it runs and is ready.
func (w *watched) runs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cmd != nil && !w.gone() && w.answers()
}

// fill fills a disk, and says whether it did. Who notices and gives room up has that filled, too, if it is fast.
func fill(t *testing.T, disk string) bool {
	t.Helper()
	file, err := os.Create(filepath.Join(disk, filler))
	if err != nil {
		t.Error(err)
		return false
	}
	defer func() { _ = file.Close() }()
	for _, block := range []int{1 << 20, 4096} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, block))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the disk did not fill up: %v", err)
		return false
	}
	return true
}

// empty makes room again.
func empty(t *testing.T, disk string) {
	t.Helper()
	if err := os.Remove(filepath.Join(disk, filler)); err != nil {
		t.Error(err)
	}
}

// filler is the file that fills a disk.
const filler = "filler"
