package sql

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// writers is how many requests write at once.
const writers = 32

// processTime is the processor time of this process so far. On a busy machine it tells
// more than the clock.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report adds rate, processor time and memory of the process to a benchmark.
func report(b *testing.B, start time.Time, used time.Duration) {
	b.Helper()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "saved/s")
	b.ReportMetric(float64((processTime()-used).Microseconds())/float64(b.N), "cpu-us/op")
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kb); err == nil {
			b.ReportMetric(kb/1024, "MB-RSS")
		}
	}
}

func bothEngines(b *testing.B, run func(b *testing.B, s *Store)) {
	b.Helper()
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) { run(b, engines[name](b)) })
	}
}

// BenchmarkSaveFacts measures from the bytes that arrive to the commit.
func BenchmarkSaveFacts(b *testing.B) {
	const nodes = 500
	for _, mode := range []string{"first", "unchanged", "few_changed"} {
		b.Run(mode, func(b *testing.B) {
			bothEngines(b, func(b *testing.B, s *Store) {
				b.Helper()
				benchFacts(b, s, mode, nodes)
			})
		})
	}
}

func benchFacts(b *testing.B, s *Store, mode string, nodes int) {
	b.Helper()
	var bodies [3][][]byte
	for round := range bodies {
		for n := range nodes {
			bodies[round] = append(bodies[round], sampleFacts(fleet.Certname(fmt.Sprintf("n%04d.example", n)), round))
		}
	}
	save := func(body []byte, rename string) {
		told, err := facts.Parse(body)
		if err != nil {
			b.Error(err)
			return
		}
		f := inventory.FactsOf(told)
		f.ReceivedAt, f.Environment = time.Now(), "production"
		if rename != "" {
			f.Certname = fleet.Certname(rename)
		}
		if _, _, err := s.Facts.SaveFacts(b.Context(), f); err != nil {
			b.Error(err)
		}
	}
	if mode != "first" {
		for _, body := range bodies[0] {
			save(body, "")
		}
	}
	var next atomic.Int64
	b.SetParallelism(writers)
	b.SetBytes(int64(len(bodies[0][0])))
	start, used := time.Now(), processTime()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := int(next.Add(1))
			switch mode {
			case "first":
				save(bodies[0][n%nodes], fmt.Sprintf("m%06d.example", n))
			case "unchanged":
				save(bodies[0][n%nodes], "")
			case "few_changed":
				save(bodies[1+n/nodes%2][n%nodes], "")
			}
		}
	})
	b.StopTimer()
	report(b, start, used)
}

// BenchmarkSaveReport measures from the bytes that arrive to the commit.
func BenchmarkSaveReport(b *testing.B) {
	for _, size := range []struct {
		name      string
		resources int
	}{{"typical", 100}, {"first_run_390KB", 560}} {
		b.Run(size.name, func(b *testing.B) {
			bothEngines(b, func(b *testing.B, s *Store) {
				b.Helper()
				benchReports(b, s, size.resources)
			})
		})
	}
}

func benchReports(b *testing.B, s *Store, resources int) {
	b.Helper()
	body := string(sampleReportBody("n0000.example", resources, 1))
	before, after, _ := strings.Cut(body, "00000000-0000-4000-8000-000000000001")
	before, node, _ := strings.Cut(before, "n0000.example")
	var next atomic.Int64
	b.SetParallelism(writers)
	b.SetBytes(int64(len(body)))
	start, used := time.Now(), processTime()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := next.Add(1)
			var body strings.Builder
			fmt.Fprintf(&body, "%sn%04d.example%s00000000-0000-4000-8000-%012x%s", before, n%2000, node, n, after)
			r, err := inventory.ParseReport([]byte(body.String()))
			if err != nil {
				b.Fatal(err)
			}
			r.ReceivedAt = time.Now()
			if err := s.Reports.SaveReport(b.Context(), r); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	report(b, start, used)
}
