package server

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/event/trace"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/submit"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/sql"
	"github.com/tutti-project/tutti/internal/target"
)

// regainWithin is how long an agent may take from one of several servers to another: it waits for up to 2 s, and again for up to 4 if that one refuses it.
const regainWithin = 10 * time.Second

// openJobs wires the job core to its neighbours.
func (p *parts) openJobs(c settings.Config) error {
	key, err := p.data.Seal()
	if err != nil {
		return err
	}
	settings := job.DefaultSettings()
	settings.Timeout, settings.Poll, settings.Reconnect = c.JobTimeout, c.JobPollInterval, c.JobReconnect
	if c.Cluster {
		settings.Regain = regainWithin
	}
	settings.Silence = c.BrokerIdleTimeout + time.Minute // a connection that broke without a word is closed before that
	p.jobs, err = job.New(job.Parts{
		Store:    trace.Jobs{Store: p.store.Jobs, Recorder: p.recorder},
		Sender:   sender{p.agents},
		Resolver: p.resolver,
		Graph:    appgraph.Service{Store: p.store.Catalogs},
		Gate:     gateOver(p.store),
		Sealer:   key,
		Ends:     target.LockedOut{Certificates: p.store.Authority},
		Reports:  checkin.Runs{Reports: p.store.Reports, Breakages: p.store.Queue, Delivery: p.deliver},
		NewID:    uuid.NewString,
		Now:      time.Now,
		Relay:    p.relay,
		Log:      p.log.Logger,
	}, settings)
	if err != nil {
		return err
	}
	p.submits = submit.Service{Jobs: p.jobs, Tasks: codeTasks{p.library, p.blobs}, Targets: p.resolver}
	p.schedules = schedule.New(schedule.Parts{
		Store: p.store.Schedules, Orders: p.submits, Owners: p.access, Sealer: key, Now: time.Now, Log: p.log.Logger,
	})
	p.departures = departures{p.jobs, p.register, p.catalogue, p.log.Logger}
	revoked := p.relay.Join("revoked", func(string) { p.ca.Hint() })
	p.ca.Revocations.OnLeave(func(ctx context.Context, node fleet.Certname) {
		revoked("")
		p.departures.endRuns(ctx, "its node's certificate was revoked", node)
	})
	p.metrics.jobFigures(p.jobs)
	return nil
}

// openTargets makes what says who is meant.
func (p *parts) openTargets() {
	p.resolver = target.Resolver{
		Stored:       p.store.Groups,
		Standings:    p.store.Wants,
		Groups:       p.members,
		Inventory:    p.store.Queries,
		Applications: appgraph.Service{Store: p.store.Catalogs},
		Certificates: p.store.Authority,
		Connected:    p.agents.nodes,
		Narrower:     target.Narrower{Inventory: p.store.Queries, Modules: p.catalogue, Asker: p.calls, Gate: gateOver(p.store)},
	}
}

// gateOver says what somebody may do with nodes.
func gateOver(store *sql.Store) target.Gate {
	return target.Gate{Scopes: target.Scopes{Inventory: store.Queries}, Nodes: store.Nodes}
}

// jobFigures registers what the jobs can be asked for.
func (m *metrics) jobFigures(jobs *job.Service) {
	stats := jobs.Stats
	for _, state := range job.Unfinished() {
		m.gauge("tutti_job_runs_"+string(state), "Runs of jobs that are "+string(state)+".", func() float64 { return float64(stats().Open[state]) })
	}
	for _, state := range job.States() {
		if state.Final() {
			m.counter("tutti_job_runs_"+string(state)+"_total", "Runs of jobs that ended as "+string(state)+".",
				func() float64 { return float64(stats().Ended[state]) })
		}
	}
	m.gauge("tutti_jobs_open", "Jobs that have not ended.", func() float64 { return float64(stats().Jobs) })
	m.gauge("tutti_job_oldest_queued_seconds", "Age of the oldest job of which nothing was sent yet.", func() float64 { return stats().Oldest.Seconds() })
	m.counter("tutti_job_orders_sent_total", "Orders that were sent for the first time.", func() float64 { return float64(stats().Sent) })
	m.counter("tutti_job_orders_resent_total", "Orders that were sent again.", func() float64 { return float64(stats().Resent) })
	m.counter("tutti_job_questions_total", "Questions to agents about runs.", func() float64 { return float64(stats().Asked) })
	m.gauge("tutti_job_answers_waiting", "Answers of agents that are not stored yet.", func() float64 { return float64(stats().Answers) })
	m.gauge("tutti_job_answers_waiting_bytes", "Size of the answers that are not stored yet.", func() float64 { return float64(stats().AnswerBytes) })
}
