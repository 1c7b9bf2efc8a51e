package server

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// lossHeard is a log that is told of lost leases.
type lossHeard chan string

func (l lossHeard) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "a lease was lost") {
		l <- string(line)
	}
	return len(line), nil
}

// What exists once is done by who has its lease: another server keeps this one from it, as long as it lives, and one that is fenced
// off writes nothing more.
func TestWhatExistsOnceIsDoneUnderLeases(t *testing.T) {
	t.Parallel()
	c, lost := settings.Default(), make(lossHeard, 100)
	c.Data, c.JobReconnect = filepath.Join(t.TempDir(), "data"), time.Millisecond
	p, err := open(t.Context(), c, newLogger(c, lost))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	if _, _, err := p.store.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: "away.example", Values: []byte(`{}`), ReceivedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	other := seize(t, p)
	works := doneOnce(p)
	running := start(context.WithoutCancel(t.Context()), stage{"leases": p.leases.Run}, works)
	t.Cleanup(func() {
		if err := running.stop(nil); err != nil {
			t.Error(err)
		}
	})
	want := map[string]string{}
	for name := range works {
		want[name] = p.id
	}
	want["jobs"] = other.Holder
	holders(t, p, want)
	first := ordered(t, p)
	wantQueued(t, p, first)

	giveBack(t, p, other)
	want["jobs"] = p.id
	mine := holders(t, p, want)["jobs"]
	untilEnded(t, p, first)

	giveBack(t, p, mine) // as if this server had been away for too long
	other = seize(t, p)
	second := ordered(t, p)
	if line := <-lost; !strings.Contains(line, "lease=jobs") {
		t.Errorf("lost: %s", line)
	}
	wantQueued(t, p, second)
	giveBack(t, p, other)
	untilEnded(t, p, second)
}

// seize takes the lease of jobs for a server that does nothing with it.
func seize(t *testing.T, p *parts) lease.Grant {
	t.Helper()
	g, ok, err := p.store.Leases.AcquireLease(t.Context(), "jobs", "another server", time.Hour)
	if err != nil || !ok {
		t.Fatalf("it gets nothing: %v", err)
	}
	return g
}

func giveBack(t *testing.T, p *parts, g lease.Grant) {
	t.Helper()
	if err := p.store.Leases.ReleaseLease(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

// ordered is a job that ends as soon as somebody dispatches it.
func ordered(t *testing.T, p *parts) job.Job {
	t.Helper()
	j, err := p.jobs.Create(t.Context(), admin(), uptime("away.example"))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func wantQueued(t *testing.T, p *parts, j job.Job) {
	t.Helper()
	now, err := p.store.Jobs.Job(t.Context(), j.ID)
	if err != nil || now.Status != job.Queued {
		t.Errorf("job %d is %s, %v", j.ID, now.Status, err)
	}
}

// holders waits until the leases are held so, and returns their grants by name.
func holders(t *testing.T, p *parts, want map[string]string) map[string]lease.Grant {
	t.Helper()
	for {
		all, err := p.store.Leases.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, grants := map[string]string{}, map[string]lease.Grant{}
		for _, l := range all {
			if !l.Free() {
				got[l.Name], grants[l.Name] = l.Holder, l.Grant
			}
		}
		if maps.Equal(got, want) {
			return grants
		}
		if len(got) > len(want) {
			t.Fatalf("held: %v, want %v", got, want)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func untilEnded(t *testing.T, p *parts, j job.Job) {
	t.Helper()
	for !j.Status.Final() {
		if err := p.jobs.Wait(t.Context(), j.ID, j.Change); err != nil {
			t.Fatal(err)
		}
		now, err := p.store.Jobs.Job(t.Context(), j.ID)
		if err != nil {
			t.Fatal(err)
		}
		j = now
	}
}
