package ruby

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
)

// BenchmarkCompile keeps all workers busy with one size of catalog and reports
// catalogs per CPU second of Ruby, the zygote's included, and what the processes
// hold together (proportional set size).
func BenchmarkCompile(b *testing.B) {
	pool := running(b, Config{}, directories{version("bench"): copyTree(b, "testdata/bench")})
	sizes := []string{"small", "medium", "large"}
	var samples []compile.Order
	for _, size := range sizes {
		samples = append(samples, order(b, "production", "bench", size+"-0.example.org"))
	}
	if err := pool.Warm(b.Context(), "production", version("bench"), samples); err != nil {
		b.Fatal(err)
	}
	for _, size := range sizes {
		b.Run(size, func(b *testing.B) { benchmark(b, pool, size) })
	}
}

func benchmark(b *testing.B, pool *Pool, size string) {
	b.Helper()
	o := order(b, "production", "bench", size+"-1.example.org")
	before := cpuOf(b, pool)
	work := make(chan struct{})
	var group sync.WaitGroup
	var mu sync.Mutex
	var wall time.Duration
	var counted time.Duration
	var pss int64
	for range pool.cfg.Workers {
		group.Go(func() {
			for range work {
				outcome, err := pool.Compile(b.Context(), o)
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				wall += outcome.Cost.Wall
				counted += outcome.Cost.CPU
				mu.Unlock()
			}
		})
	}
	b.ResetTimer()
	for i := range b.N {
		work <- struct{}{}
		if i == b.N-1 {
			pss = pssOf(b, pool)
		}
	}
	close(work)
	group.Wait()
	b.StopTimer()
	cpu := cpuOf(b, pool) - before
	b.ReportMetric(float64(b.N)/cpu.Seconds(), "catalogs/cpu-s")
	b.ReportMetric(float64(counted.Milliseconds())/float64(b.N), "cpu-ms/compile")
	b.ReportMetric(float64(wall.Milliseconds())/float64(b.N), "wall-ms/compile")
	b.ReportMetric(float64(pss>>20), "MB-all")
}

// cpuOf is the CPU time of the zygote, its workers, and its ended workers.
func cpuOf(b *testing.B, pool *Pool) time.Duration {
	b.Helper()
	var ticks int64
	for _, pid := range pidsOf(pool) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[11:15] { // utime stime cutime cstime
			n, _ := strconv.ParseInt(field, 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100
}

func pssOf(b *testing.B, pool *Pool) (sum int64) {
	b.Helper()
	for _, pid := range pidsOf(pool) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				sum += kb << 10
			}
		}
	}
	return sum
}

func pidsOf(pool *Pool) (pids []int) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	for _, e := range pool.entries {
		pids = append(pids, belowOf(e.z.pid())...)
	}
	return pids
}
