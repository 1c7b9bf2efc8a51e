package ruby

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
)

// await polls until what is true; processes do not tell strangers when they end.
func await(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	limit := time.After(3 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			tb.Fatalf("waited in vain for: %s", what)
		}
	}
}

// running tells whether a process is there and no zombie.
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return !strings.HasPrefix(strings.TrimSpace(rest), "Z")
}

// processesIn lists the running processes whose working directory or an open
// file lies below dir: zygotes, workers, and what these started.
func processesIn(dir string) (pids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, entry := range entries {
		target, err := os.Readlink(entry)
		pid, _ := strconv.Atoi(strings.Split(entry, "/")[2])
		if err == nil && strings.HasPrefix(target, dir) && isRunning(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// aWorker waits until the pool has a worker.
func aWorker(tb testing.TB, pool *Pool) (w *worker) {
	tb.Helper()
	await(tb, "a worker", func() bool {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		for w = range pool.workers {
			return true
		}
		return false
	})
	return w
}

// hostPID is the number by which this machine knows a worker: it has another one in its cell.
func hostPID(tb testing.TB, w *worker) int {
	tb.Helper()
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", w.z.pid()))
	if err != nil {
		tb.Fatal(err)
	}
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		text, err := os.ReadFile(name + "/status")
		if other, _ := os.Readlink(name + "/ns/pid"); err != nil || other != space {
			continue
		}
		_, rest, _ := strings.Cut(string(text), "\nNSpid:")
		line, _, _ := strings.Cut(rest, "\n")
		if numbers := strings.Fields(line); len(numbers) > 0 && numbers[len(numbers)-1] == strconv.Itoa(w.pid) {
			pid, _ := strconv.Atoi(numbers[0])
			return pid
		}
	}
	tb.Fatalf("there is no worker %d in the cell of %d", w.pid, w.z.pid())
	return 0
}

type result struct {
	outcome compile.Outcome
	err     error
}

func compileLater(pool *Pool, ctx context.Context, o compile.Order) <-chan result { //nolint:revive // ctx second reads better in tests
	done := make(chan result, 1)
	go func() {
		outcome, err := pool.Compile(ctx, o)
		done <- result{outcome, err}
	}()
	return done
}

// childrenOf lists the running children of a process.
func childrenOf(pid int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		child, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if parent, _ := strconv.Atoi(fields[1]); parent == pid && isRunning(child) {
			pids = append(pids, child)
		}
	}
	return pids
}

// belowOf is a process with all that it started.
func belowOf(pid int) []int {
	pids := []int{pid}
	for _, child := range childrenOf(pid) {
		pids = append(pids, belowOf(child)...)
	}
	return pids
}
