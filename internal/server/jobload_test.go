package server

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// BenchmarkDispatch is a job over 10 000 agents that answer at once, from its order to
// the last row, on SQLite.
func BenchmarkDispatch(b *testing.B) {
	const nodes = 10_000
	s := newOrderer(b, io.Discard)
	all := make([]fleet.Certname, nodes)
	for i := range all {
		all[i] = fleet.Certname(fmt.Sprintf("n%05d.example", i))
		newAgent(all[i], manner{stdout: "up 3 days\n"}).join(b, s.broker, &s.serving)
	}
	for b.Loop() {
		began := b.Elapsed()
		j := s.order(uptime(all...))
		s.until(j.ID, func(j job.Job) bool { return j.Counts[job.Waiting] == 0 })
		b.ReportMetric((b.Elapsed() - began).Seconds(), "s/dispatched")
		if j, _ := s.until(j.ID, ended); j.Status != job.Finished {
			b.Fatalf("the job is %s: %v", j.Status, j.Counts)
		}
	}
}

// Many agents with a megabyte each, all at once: everything is there at the end.
func TestMuchOutputAtOnce(t *testing.T) {
	t.Parallel()
	const nodes = 12
	s := newOrderer(t, io.Discard)
	holds := make(chan struct{})
	text := strings.Repeat(strings.Repeat("0123456789abcde", 6)+"\n", 1<<20/91)
	all := make([]fleet.Certname, nodes)
	for i := range all {
		all[i] = fleet.Certname(fmt.Sprintf("n%05d.example", i))
		newAgent(all[i], manner{stdout: text, holds: holds}).join(t, s.broker, &s.serving)
	}
	j := s.order(uptime(all...))
	s.until(j.ID, func(j job.Job) bool { return j.Counts[job.Running] == nodes })
	close(holds)
	_, runs := s.until(j.ID, ended)
	for _, r := range runs {
		if r.State != job.Succeeded || r.Output.Bytes != int64(len(text)) || r.Output.Digest != runs[0].Output.Digest {
			t.Errorf("%s is %s with %d bytes", r.Node, r.State, r.Output.Bytes)
		}
	}
}
