package e2e_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/sim"
)

// A job goes on when its server is killed in the middle, and who follows it sees every
// run end, once.
func TestFollowingAJobOverACrashOfTheServer(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all", "--listen", steadyAddress(t), "--job-reconnect", "10m")
	enroller, err := newEnroller(s)
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	names := sim.Names(24, "follow.test")
	nodes, err := startFleet(s, enroller, names...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nodes.close() }()

	follow := exec.CommandContext(t.Context(), binary, "command", "run", "sleep 2; hostname", "--all", "--concurrency", "3", "-o", "jsonl")
	var out bytes.Buffer
	progress := &buffer{}
	follow.Env, follow.Stdout, follow.Stderr, follow.WaitDelay = append(slices.Clone(s.env), "TUTTI_DATA="+s.data), &out, progress, 5*time.Second
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the first run ends", func() bool { return strings.Contains(progress.text(), ": succeeded") })
	if err := s.crash(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the command notices", func() bool { return strings.Contains(progress.text(), "trying again") })
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := follow.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, progress.text())
	}
	if !strings.Contains(progress.text(), "connected again") || !strings.Contains(progress.text(), "24 succeeded") {
		t.Errorf("progress:\n%s", progress.text())
	}
	var seen []string
	for line := range strings.Lines(out.String()) {
		var run struct{ Node, Stdout string }
		if err := json.Unmarshal([]byte(line), &run); err != nil || run.Stdout != run.Node+"\n" {
			t.Errorf("%v: %s", err, line)
		}
		seen = append(seen, run.Node)
	}
	slices.Sort(seen)
	if diff := cmp.Diff(names, seen); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// buffer is an output that can be read while a program writes it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
