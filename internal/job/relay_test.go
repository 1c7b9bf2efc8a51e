package job_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/hint"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

// Two servers share the rows, and only one dispatches. With hints between them nobody waits for a look; without, nothing is lost.
func TestJobsOfTwoServers(t *testing.T) {
	t.Parallel()
	for name, heard := range map[string]bool{"with hints": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, nodes := jobtest.NewStore(), names(2)
				fleet := jobtest.NewFleet(nodes...)
				relays := make([]*hint.Relay, 2)
				settings := job.DefaultSettings()
				settings.Tick = time.Minute // long, so that a hint is told from a look
				servers := make([]*job.Service, 2)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 2)
				for i := range servers {
					relays[i] = hint.NewRelay(func(data []byte) error {
						if heard {
							relays[1-i].Heard(data)
						}
						return nil
					})
					var err error
					servers[i], err = job.New(job.Parts{
						Store: store, Sender: fleet, Resolver: jobtest.Everybody(nodes), Gate: jobtest.OpenGate{}, Sealer: jobtest.Seals{}, Ends: jobtest.Ends{},
						NewID: jobtest.NewID, Now: time.Now, Relay: relays[i], Log: slog.New(slog.DiscardHandler),
					}, settings)
					if err != nil {
						t.Fatal(err)
					}
					go func() { ended <- relays[i].Run(ctx) }()
				}
				dispatches, orders := servers[0], servers[1]
				fleet.Know(orders) // its nodes are connected there: answers come to it
				go func() { ended <- jobtest.Serve(ctx, dispatches) }()
				go func() { ended <- orders.Run(ctx) }()
				synctest.Wait()

				began := time.Now()
				j, err := orders.Create(ctx, ann, command())
				if err != nil {
					t.Fatal(err)
				}
				for !j.Status.Final() {
					if err := dispatches.Wait(ctx, j.ID, j.Change); err != nil {
						t.Fatal(err)
					}
					if j, err = dispatches.Job(ctx, j.ID); err != nil {
						t.Fatal(err)
					}
				}
				took := time.Since(began)
				if heard && took > time.Second || !heard && (took < settings.Tick/2 || took > 3*settings.Tick) {
					t.Errorf("the job took %s", took)
				}
				if j.Status != job.Finished || j.Counts[job.Succeeded] != 2 {
					t.Errorf("the job is %s: %v", j.Status, j.Counts)
				}
				stop()
				for range 4 {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				fleet.Wait()
			})
		})
	}
}
