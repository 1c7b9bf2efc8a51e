package measure

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentilesAreNearestRank(t *testing.T) {
	t.Parallel()
	samples := make([]time.Duration, 0, 100)
	for i := 100; i >= 1; i-- {
		samples = append(samples, time.Duration(i)*time.Millisecond)
	}
	ms := time.Millisecond
	cases := []struct {
		name    string
		samples []time.Duration
		want    Latency
	}{
		{"none", nil, Latency{}},
		{"one", samples[:1], Latency{Count: 1, P50: 100 * ms, P90: 100 * ms, P99: 100 * ms, Max: 100 * ms, Mean: 100 * ms}},
		{"hundred", samples, Latency{Count: 100, P50: 50 * ms, P90: 90 * ms, P99: 99 * ms, Max: 100 * ms, Mean: 50500 * time.Microsecond}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, Summarize(c.samples)); diff != "" {
				t.Errorf("latency (-want +got):\n%s", diff)
			}
		})
	}
	if samples[0] != 100*ms {
		t.Error("Summarize reordered its input")
	}
}

func TestStatLineWithOddCommandName(t *testing.T) {
	t.Parallel()
	line := "42 (a) b (c)) S 7 40 40 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 9 8 7"
	got, ok := parseStat(line)
	if !ok {
		t.Fatal("not parsed")
	}
	if got.parent != 7 || got.group != 40 || got.cpu != 1270*time.Millisecond {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1", "42 (x) S a b c d e f g h i j k l m n o"} {
		if _, ok := parseStat(bad); ok {
			t.Errorf("parsed %q", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (a) S 7 40 40 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 9 8 7")
	f.Add(")")
	f.Fuzz(func(_ *testing.T, line string) { parseStat(line) })
}

func TestTreeCountsDescendantsAndTheGroup(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	add := func(pid, stat, rollup string) {
		dir := filepath.Join(proc, pid)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"stat": stat, "smaps_rollup": rollup} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	line := func(ppid, pgrp, ticks string) string {
		return "1 (x) S " + ppid + " " + pgrp + " 1 0 -1 0 0 0 0 0 " + ticks + " 0 0 0 20 0"
	}
	add("10", line("1", "10", "100"), "Rss: 300 kB\nPss: 200 kB\nPss_Dirty: 9 kB\nAnonymous: 7 kB\n")
	add("11", line("10", "11", "10"), "Rss: 30 kB\nPss: 20 kB\n") // a child in a group of its own
	add("12", line("11", "12", "5"), "Pss: 1 kB\n")               // a grandchild
	add("13", line("1", "10", "2"), "Pss: 2 kB\n")                // an orphan of the group
	add("14", line("1", "14", "1000"), "Pss: 1000 kB\n")          // somebody else
	got, err := treeIn(proc, []int{10})
	if err != nil {
		t.Fatal(err)
	}
	want := Usage{
		CPU: 1170 * time.Millisecond, PSSBytes: 223 << 10, RSSBytes: 330 << 10, RootPSS: 200 << 10, RootRSS: 300 << 10, RootAnon: 7 << 10,
		Processes: 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if _, err := treeIn(proc, []int{99}); err == nil {
		t.Error("a missing root is no error")
	}
}

// TestTreeSeesReapedChildren is the real kernel's word: a shell burns CPU in a
// child, reaps it, and waits; the child's time must still be there.
func TestTreeSeesReapedChildren(t *testing.T) {
	t.Parallel()
	burn := `sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo done; read wait`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", burn)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	word := make([]byte, 5)
	if _, err := out.Read(word); err != nil {
		t.Fatal(err)
	}
	usage, err := Tree(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if usage.CPU < 2*clockTick || usage.PSSBytes == 0 || usage.Processes != 1 {
		t.Errorf("usage = %+v, want CPU of the reaped child, memory of the shell", usage)
	}
	_ = in.Close()
	_ = cmd.Wait()
}

func TestPeakKeepsTheHighest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	values := []int64{1, 9, 3}
	pss, rss := Peak(ctx, time.Microsecond, func() (Usage, error) {
		v := values[0]
		if len(values) == 1 {
			cancel()
		} else {
			values = values[1:]
		}
		return Usage{PSSBytes: v, RSSBytes: 2 * v}, nil
	})
	if pss != 9 || rss != 18 {
		t.Errorf("peak = %d, %d", pss, rss)
	}
}

func TestCompareAndPrint(t *testing.T) {
	t.Parallel()
	report := &Report{
		Name: "x", Machine: Machine{CPU: "C", Cores: 2},
		Rows: []Row{
			{"tutti", "small", map[string]float64{"rate": 30, "pss_mb": 100}},
			{"peer", "small", map[string]float64{"rate": 10, "pss_mb": 200}},
		},
		Notes: []string{"a note"},
	}
	report.Ratios = Compare(report.Rows, "tutti", []Aim{
		{Case: "small", Figure: "rate", Peer: "peer", Min: 3},
		{Case: "small", Figure: "pss_mb", Peer: "peer", Max: 0.34},
		{Case: "small", PeerCase: "nothing", Figure: "rate", Peer: "peer"},
		{Case: "large", Figure: "rate", Peer: "peer", Min: 3},
	})
	if len(report.Ratios) != 2 || !*report.Ratios[0].Met || *report.Ratios[1].Met {
		t.Errorf("ratios = %+v", report.Ratios)
	}
	var out bytes.Buffer
	if err := report.Print(&out, []string{"rate", "pss_mb", "missing"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"30.0", ">= 3", "yes", "NO", "a note", "-"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if err := report.Write(filepath.Join(t.TempDir(), "out")); err != nil {
		t.Error(err)
	}
}

func TestBusyLeavesIdleOut(t *testing.T) {
	t.Parallel()
	if got, want := busy("cpu  1 2 3 1000 1000 4 5 1000 1000 0"), 150*time.Millisecond; got != want {
		t.Errorf("busy = %v, want %v", got, want)
	}
	if busy("cpu0 1 2") != 0 || busy("") != 0 {
		t.Error("a line of another kind counts")
	}
}

func TestWatchSeparatesServerAndClients(t *testing.T) {
	t.Parallel()
	var samples atomic.Int64
	watch, err := Start(t.Context(), func() (Usage, error) { // burns more than the machine has
		return Usage{CPU: time.Duration(samples.Add(1)) * time.Hour, PSSBytes: 5}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	span, err := watch.Stop(broken)
	if !errors.Is(err, broken) || span.Server < time.Hour || span.Others != 0 || span.PeakPSS != 5 || span.Wall <= 0 {
		t.Errorf("span = %+v, err %v", span, err)
	}
}

func TestIncompleteReportKeepsTheError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken off")
	var out bytes.Buffer
	if err := (&Report{}).Incomplete(&out, nil, broken); !errors.Is(err, broken) || out.Len() > 0 {
		t.Errorf("without rows: %v, %q", err, out.String())
	}
	report := &Report{Rows: []Row{{"peer", "small", map[string]float64{"rate": 10}}}}
	if err := report.Incomplete(&out, []string{"rate"}, broken); !errors.Is(err, broken) || !strings.Contains(out.String(), "incomplete: broken off") {
		t.Errorf("with rows: %v, %q", err, out.String())
	}
}
