package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const (
	eventClients = 20
	eventSeconds = 8 // that each node's run takes, so that clients have something to wait for
	askedCase    = "events of all, 20 clients ask"
)

// events is a task on all agents that takes a while, which clients of Puppet Enterprise follow meanwhile: each asks for the job's events again as
// soon as it has an answer. What they cost is what is more than without them.
func (b *bench) events(name string, clients int) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		var asked atomic.Int64
		figures, span, err := measure.Watched(ctx, name, b.tutti.Usage, func() (map[string]float64, error) {
			start := time.Now()
			started, err := api.JobTask.Call(ctx, b.api, api.JobTaskRequest{
				JobOrder: api.JobOrder{Targets: api.JobTargets{All: true}}, Task: taskName,
				Params: json.RawMessage(fmt.Sprintf(`{"sleep":%d}`, eventSeconds)),
			})
			if err != nil {
				return nil, err
			}
			var asking errgroup.Group
			for range clients {
				asking.Go(func() error { return b.followEvents(ctx, started.Job.ID, &asked) })
			}
			course, err := simfleet.Follow(ctx, b.api, start, started.Job.ID)
			if wrong := asking.Wait(); err == nil {
				err = wrong
			}
			return map[string]float64{"done_s": course.Done.Seconds(), "api_asks": float64(asked.Load()), "agents": float64(b.Agents)}, err
		})
		if err != nil {
			return measure.Row{}, err
		}
		if clients == 0 {
			b.unasked = span.Server
		} else {
			figures["asking_cores"] = span.More(b.unasked)
		}
		return measure.Ours(name, figures), nil
	}
}

// followEvents asks for events until the job has ended. Each node must have begun and ended in what it hears.
func (b *bench) followEvents(ctx context.Context, job string, asked *atomic.Int64) error {
	token, err := os.ReadFile(b.tutti.TokenPath())
	if err != nil {
		return err
	}
	client := orchestratorClient{
		base: b.tutti.URL() + "/orchestrator/v1", token: strings.TrimSpace(string(token)),
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: b.tutti.Trust()}},
	}
	defer client.http.CloseIdleConnections()
	next, heard := "0", map[string]int{}
	for {
		var answer struct {
			Next  struct{ Event string } `json:"next-events"`
			Items []struct{ Type string }
		}
		if err := client.ask(ctx, http.MethodGet, "/jobs/"+job+"/events?start="+next, nil, &answer); err != nil {
			return err
		}
		asked.Add(1)
		next = answer.Next.Event
		over := false
		for _, e := range answer.Items {
			heard[e.Type]++
			over = over || e.Type == "job_finished"
		}
		if over {
			if heard["node_running"] != b.Agents || heard["node_finished"] != b.Agents {
				return fmt.Errorf("of %d nodes a client heard %v", b.Agents, heard)
			}
			return nil
		}
	}
}
