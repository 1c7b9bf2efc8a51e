package diff

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// benchNodes is the fleet of the benchmark.
const benchNodes = 10_000

// BenchmarkFleet compares and groups the catalogs of 10 000 nodes with 526 resources of
// real modules each. A node that changes has, besides its own name all over: a package's new
// version, one of five variants of a file, a resource less, one that is its own, a relation, and a
// hundred resources whose declaration moved. Both documents are read anew for each node; making
// them (a copy) is part of the time. Memory is the process's highest resident size.
func BenchmarkFleet(b *testing.B) {
	all, err := compileReal("../compiler/ruby/testdata/bench", []string{"medium-9"})
	if err != nil {
		b.Fatal(err)
	}
	t := newTemplates(all["medium-9"])
	for _, percent := range []int{2, 100} {
		b.Run(fmt.Sprintf("changed=%d%%", percent), func(b *testing.B) {
			b.SetBytes(int64(2 * t.size * benchNodes * percent / 100))
			start := cpuSeconds(b)
			for b.Loop() {
				benchFleet(b, t, percent)
			}
			b.ReportMetric((cpuSeconds(b)-start)/float64(b.N), "cpu-s/op")
			b.ReportMetric(peakMB(b), "peak-MB")
		})
	}
}

// templates is a catalog that is made into two for each node.
type templates struct {
	old  [][]byte    // between these stands the node's name
	new  [5][][]byte // the variants
	size int
}

const (
	benchName  = "medium-9.example.org"
	benchFirst = `"resources":[`
)

func newTemplates(doc []byte) templates {
	cut := func(doc []byte) [][]byte { return bytes.Split(doc, []byte(benchName)) }
	t := templates{old: cut(doc), size: len(doc)}
	for i := range t.new {
		doc := bytes.Replace(doc, []byte(`"ensure":"present"`), []byte(`"ensure":"3.0.17"`), 1)
		doc = bytes.Replace(doc, []byte(`\n`), []byte(`\nvariant `+strconv.Itoa(i)+`\n`), 1)
		doc = bytes.Replace(doc, []byte(`"line":`), []byte(`"line":1`), 100)
		t.new[i] = cut(doc)
	}
	return t
}

// before is a node's old catalog.
func (t templates) before(n uint32) []byte { return bytes.Join(t.old, []byte(nodeName(n))) }

// after is its new one.
func (t templates) after(n uint32) []byte {
	doc := bytes.Join(t.new[n%5], []byte(nodeName(n)))
	head, tail, _ := bytes.Cut(doc, []byte(benchFirst))
	own := fmt.Sprintf(`{"type":"Notify","title":"own %d","parameters":{"message":"a\nb %d\n","before":"Class[Main]"},"tags":[]},`, n, n*7)
	return bytes.Join([][]byte{head, []byte(benchFirst + own), tail}, nil)
}

func benchFleet(b *testing.B, t templates, percent int) {
	b.Helper()
	g := newGrouper(b, GrouperConfig{})
	var next atomic.Uint32
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for n := next.Add(1) - 1; n < benchNodes; n = next.Add(1) - 1 {
				if int(n%100) >= percent {
					g.AddSame(Node{n, nodeName(n)})
					continue
				}
				before, err := Parse(t.before(n))
				if err != nil {
					b.Error(err)
					return
				}
				after, err := Parse(t.after(n))
				if err != nil {
					b.Error(err)
					return
				}
				d, err := Compare(before, after)
				if err != nil {
					b.Error(err)
					return
				}
				g.Add(b.Context(), Node{n, nodeName(n)}, d)
			}
		})
	}
	all.Wait()
	f := fleetOf(b, g)
	if f.Changed != benchNodes*percent/100 || f.Groups[0].Nodes != f.Changed {
		b.Errorf("%d nodes changed, the largest group has %d", f.Changed, f.Groups[0].Nodes)
	}
	b.ReportMetric(float64(len(f.Groups)), "groups")
}

// BenchmarkNothingInCommon groups 10 000 nodes with 30 changes each that no other node has: the
// most that the table of groups, and the examples, may take.
func BenchmarkNothingInCommon(b *testing.B) {
	empty, err := Parse([]byte(`{"resources":[]}`))
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(`a line of some length\n`, 20)
	for b.Loop() {
		g := newGrouper(b, GrouperConfig{})
		for n := range uint32(benchNodes) {
			var doc strings.Builder
			doc.WriteString(`{"resources":[`)
			for i := range 30 {
				fmt.Fprintf(&doc, `%s{"type":"File","title":"/srv/%d/%d","parameters":{"ensure":"file","content":"%s"}}`, strings.Repeat(",", min(i, 1)), n+1e6, i, text)
			}
			c, err := Parse([]byte(doc.String() + `]}`))
			if err != nil {
				b.Fatal(err)
			}
			d, err := Compare(empty, c)
			if err != nil {
				b.Fatal(err)
			}
			g.Add(b.Context(), Node{n, nodeName(n)}, d)
		}
		b.ReportMetric(float64(len(g.groups)), "groups")
	}
	b.ReportMetric(peakMB(b), "peak-MB")
}

// peakMB is the highest resident size of this process.
func peakMB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb) / 1000
}

// cpuSeconds is what this process has used: on a machine with other work, it says more
// than the clock.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
