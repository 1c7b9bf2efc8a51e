package job_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// stuckStore takes no events until it is freed, and then first says a few times that it is busy.
type stuckStore struct {
	*jobtest.Store
	free chan struct{}

	mu   sync.Mutex
	busy int
}

func (s *stuckStore) Apply(ctx context.Context, events []job.Event) ([]job.Applied, error) {
	select {
	case <-s.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 {
		s.busy--
		return nil, fault.Later(time.Second, "busy")
	}
	return s.Store.Apply(ctx, events)
}

// While the store takes nothing, only so many bytes of answers come in; the others wait with
// those who bring them. None is lost when it takes them again.
func TestAnswersWaitWhileTheStoreDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const nodes, room = 12, 64 << 10
		store := &stuckStore{Store: jobtest.NewStore(), free: make(chan struct{}), busy: 3}
		settings := job.DefaultSettings()
		settings.AnswerBytes = room
		service, err := job.New(job.Parts{
			Store: store, Sender: jobtest.NewFleet(), Resolver: jobtest.Everybody(names(nodes)), Graph: jobtest.Edges{}, Gate: jobtest.OpenGate{},
			Sealer: jobtest.Seals{}, Ends: jobtest.Ends{}, NewID: jobtest.NewID, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		}, settings)
		if err != nil {
			t.Fatal(err)
		}
		j, err := service.Create(t.Context(), ann, command(func(s *job.Spec) { s.WaitOffline = time.Hour }))
		if err != nil {
			t.Fatal(err)
		}
		runs, err := service.Runs(t.Context(), j.ID, job.RunPage{Limit: nodes})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- jobtest.Serve(ctx, service) }()
		results := pxp.Data(pxp.Outcome{Stdout: strings.Repeat("x", 20<<10)})
		var telling sync.WaitGroup
		for _, r := range runs {
			telling.Go(func() {
				if err := service.Observe(ctx, job.Answer{Node: r.Node, Kind: job.Response, Transaction: r.ID, Results: results}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if now := service.Stats(); now.AnswerBytes > room || now.AnswerBytes < room/2 || now.Answers != nodes {
			t.Errorf("%d answers wait, %d bytes came in", now.Answers, now.AnswerBytes)
		}
		close(store.free)
		telling.Wait()
		if j, err = service.Job(t.Context(), j.ID); err != nil || j.Status != job.Finished {
			t.Errorf("the job is %s: %v, %v", j.Status, j.Counts, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		late := job.Answer{Node: runs[0].Node, Kind: job.Response, Transaction: runs[0].ID, Results: results}
		wantKind(t, service.Observe(t.Context(), late), fault.Unavailable)
	})
}
