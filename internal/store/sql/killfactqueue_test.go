package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fleet"
)

// factqueueOf is a service over a store, with one place for sets that are applied at once, so
// that most are queued.
func factqueueOf(ctx context.Context, s *Store) (*factqueue.Service, error) {
	return factqueue.New(ctx, factqueue.Parts{Store: s.FactQueue, Inventory: shelf{s}, Watch: s.Reusables}, factqueue.Config{Direct: 1, Workers: 2})
}

// childIntake submits facts until it is killed, and says which were accepted.
func childIntake(ctx context.Context, s *Store) {
	service, err := factqueueOf(ctx, s)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go func() { _ = service.Run(ctx) }()
	var wg sync.WaitGroup
	var out sync.Mutex
	for worker := range 8 {
		wg.Go(func() { submitFacts(ctx, service, &out, fleet.Certname(fmt.Sprintf("n%d.example", worker))) })
	}
	wg.Wait()
}

// submitFacts submits facts of one node in turn as a whole and as a difference.
func submitFacts(ctx context.Context, service *factqueue.Service, out *sync.Mutex, node fleet.Certname) {
	state, _ := service.State(ctx, node) // of a new node nothing is known
	base := json.RawMessage(nil)
	for n := state.Number + 1; ; n++ {
		set := factqueue.Set{Node: node, Number: n, Values: fmt.Appendf(nil, `{"n":%d,"static":{"a":[1,2,3]}}`, n)}
		var err error
		if base == nil || n%2 == 0 {
			_, err = service.Put(ctx, set)
		} else {
			var p facts.Patch
			p, err = facts.Difference(base, set.Values)
			values := set.Values
			if err == nil {
				set.Values = nil
				_, err = service.Patch(ctx, factqueue.Patch{Set: set, Base: fleet.DigestOf(base), Apply: p.Apply})
			}
			set.Values = values
		}
		base = set.Values
		say(out, err, "accepted %s %d\n", node, n)
	}
}

// Killed at any place between accepting facts and applying them: none is lost, and none is
// applied twice.
func TestKillLosesNoAcceptedFacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	accepted := map[string]int64{}
	for range 5 {
		killChild(t, "factqueue", dir, 50+rand.IntN(500), func(line string) {
			var node string
			var n int64
			if _, err := fmt.Sscanf(line, "accepted %s %d", &node, &n); err != nil {
				t.Errorf("the child said %q", line)
			}
			accepted[node] = n
		})
		verifyIntake(t, dir, accepted)
	}
	if len(accepted) != 8 {
		t.Errorf("facts of %d nodes were accepted", len(accepted))
	}
}

func verifyIntake(t *testing.T, dir string, accepted map[string]int64) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: filepath.Join(dir, "tutti.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	whole(t, s)
	service, err := factqueueOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sets were queued when the process was killed", service.Load().Sets)
	drain(t, service)
	for node, n := range accepted {
		f, err := s.Facts.Facts(t.Context(), fleet.Certname(node))
		if err != nil {
			t.Errorf("accepted facts: %v", err)
			continue
		}
		var got int64
		if _, err := fmt.Sscanf(string(f.Values), `{"n":%d,`, &got); err != nil || got != f.Number || got < n {
			t.Errorf("facts of %s are %s with number %d, %d was accepted", node, f.Values, f.Number, n)
		}
		if f.Seq > f.Number {
			t.Errorf("%s changed %d times by %d submissions", node, f.Seq, f.Number)
		}
		sameRows(t, s, f)
	}
}

// drain runs the worker until nothing is queued.
func drain(t *testing.T, service *factqueue.Service) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for service.Load().Sets > 0 && ctx.Err() == nil {
		<-tick.C
	}
	stop()
	if err := <-ended; err != nil || service.Load().Sets > 0 {
		t.Errorf("%d sets are queued still, %v", service.Load().Sets, err)
	}
}
