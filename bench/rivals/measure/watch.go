package measure

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Span is what happened while a [Watch] was on.
type Span struct {
	Wall    time.Duration
	Server  time.Duration // CPU of the server's tree
	Clients time.Duration // CPU of this process
	Others  time.Duration // CPU of everybody else on the machine: not ours, and not to be trusted with small figures if large
	PeakPSS int64
	PeakRSS int64
	RootRSS int64 // the most of the server's process alone
	RestPSS int64 // the most of its children
	End     Usage
}

// Cores is a share of CPU as a number of cores.
func (s Span) Cores(cpu time.Duration) float64 { return cpu.Seconds() / s.Wall.Seconds() }

// More is how many cores the server took more than for the same work under other circumstances, which cost it less.
func (s Span) More(less time.Duration) float64 { return s.Cores(max(0, s.Server-less)) }

// Watch measures one stretch of time.
type Watch struct {
	sample func() (Usage, error)
	before Usage
	own    time.Duration
	all    time.Duration
	begin  time.Time

	stop       context.CancelFunc
	sampler    sync.WaitGroup
	pss, rss   int64
	root, rest int64
}

// Start begins to watch a server. The caller must call [Watch.Stop].
func Start(ctx context.Context, sample func() (Usage, error)) (*Watch, error) {
	before, err := sample()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	w := &Watch{sample: sample, before: before, stop: stop, own: ownCPU(), all: machineCPU(), begin: time.Now()}
	w.sampler.Go(func() {
		w.pss, w.rss = Peak(ctx, 2*time.Second, func() (Usage, error) {
			u, err := sample()
			w.root, w.rest = max(w.root, u.RootRSS), max(w.rest, u.PSSBytes-u.RootPSS)
			return u, err
		})
	})
	return w, nil
}

// Stop ends the watching and gives its figures. workErr is the error of what was
// watched; it is joined with the watch's own.
func (w *Watch) Stop(workErr error) (Span, error) {
	span := Span{Wall: time.Since(w.begin), Clients: ownCPU() - w.own}
	all := machineCPU() - w.all
	end, err := w.sample()
	w.stop()
	w.sampler.Wait()
	span.End, span.Server = end, end.Since(w.before).CPU
	span.Others = max(0, all-span.Server-span.Clients)
	span.PeakPSS, span.PeakRSS = max(w.pss, end.PSSBytes), max(w.rss, end.RSSBytes)
	span.RootRSS, span.RestPSS = max(w.root, end.RootRSS), max(w.rest, end.PSSBytes-end.RootPSS)
	return span, errors.Join(workErr, err)
}

// ownCPU is what this process has used: the load clients' share.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// machineCPU is what all processes have used since the machine started.
func machineCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return busy(line)
}

// busy adds up the first line of /proc/stat: user, nice, system, irq and
// softirq, but not idle, iowait, steal, nor the guest times that user already holds.
func busy(line string) time.Duration {
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
