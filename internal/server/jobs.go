package server

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/target"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// openJobs wires the job core to its neighbours.
func (p *parts) openJobs(c Config) error {
	key, err := p.data.sealKey()
	if err != nil {
		return err
	}
	settings := job.DefaultSettings()
	settings.Timeout, settings.Poll, settings.Reconnect = c.JobTimeout, c.JobPollInterval, c.JobReconnect
	settings.Silence = c.BrokerIdleTimeout + time.Minute // a connection that broke without a word is closed before that
	p.jobs, err = job.New(job.Parts{
		Store:    p.store.Jobs,
		Sender:   sender{p},
		Resolver: p.resolver,
		Graph:    appgraph.Service{Store: p.store.Catalogs},
		Gate:     jobGate{p},
		Sealer:   key,
		Reports:  runReports{p},
		NewID:    uuid.NewString,
		Now:      time.Now,
		Log:      p.log.Logger,
	}, settings)
	if err != nil {
		return err
	}
	p.departures = departures{p.jobs, p.log.Logger}
	p.ca.Revocations.OnLeave(func(ctx context.Context, node fleet.Certname) {
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
		Connected:    p.connected,
	}
}

// connected is the nodes whose agents are connected.
func (p *parts) connected() (nodes []fleet.Certname) {
	for _, who := range p.broker.Presences() {
		if who.URI == agentOf(who.Certname) && who.Party == broker.Node {
			nodes = append(nodes, who.Certname)
		}
	}
	return nodes
}

// sender is job.Sender: the broker brings orders to agents.
type sender struct{ *parts }

// Order implements job.Sender.
func (s sender) Order(_ context.Context, node fleet.Certname, r pxp.Request) error {
	return s.broker.Send(wire.Message{Type: wire.NonBlockingRequest, Target: agentOf(node), Data: pxp.Data(r)})
}

// Ask implements job.Sender.
func (s sender) Ask(_ context.Context, node fleet.Certname, r pxp.Request) error {
	return s.broker.Send(wire.Message{Type: wire.BlockingRequest, Target: agentOf(node), Data: pxp.BlockingData(r)})
}

// Connected implements job.Sender.
func (s sender) Connected(node fleet.Certname) (job.Link, bool) {
	who, connected := s.broker.Presence(agentOf(node))
	if !connected {
		return job.Link{}, false
	}
	return job.Link{Agent: who.Agent, Since: who.Since, Superseded: who.Superseded, Shared: who.Shared(time.Now())}, true
}

// joined hints that an agent is there.
func (i inbox) joined(who broker.Presence) {
	if who.URI == agentOf(who.Certname) {
		i.jobs.Came(who.Certname)
	}
}

// left hints that an agent is gone.
func (i inbox) left(who broker.Presence) {
	if who.URI == agentOf(who.Certname) {
		i.jobs.Went(who.Certname)
	}
}

// accepted takes the word of an agent that it has an order.
func (i inbox) accepted(ctx context.Context, from broker.Presence, m wire.Message) error {
	said, err := pxp.ParseProvisional(m.Data)
	if err != nil {
		return err
	}
	return i.jobs.Observe(ctx, job.Answer{Node: from.Certname, Kind: job.Provisional, Transaction: said.Transaction})
}

// response takes results.
func (i inbox) response(kind job.AnswerKind) broker.Handler {
	return func(ctx context.Context, from broker.Presence, m wire.Message) error {
		said, err := pxp.ParseResponse(m.Data)
		if err != nil || strings.HasPrefix(said.Transaction, hinted) {
			return err
		}
		return i.jobs.Observe(ctx, job.Answer{Node: from.Certname, Kind: kind, Transaction: said.Transaction, Results: said.Results})
	}
}

// failure takes the word of an agent that it did not do what it was asked.
func (i inbox) failure(ctx context.Context, from broker.Presence, m wire.Message) error {
	said, err := pxp.ParseFailure(m.Data)
	if err != nil || strings.HasPrefix(said.Transaction, hinted) { // an agent that knows no hints asks on its schedule
		return err
	}
	return i.jobs.Observe(ctx, job.Answer{
		Node:        from.Certname,
		Kind:        job.Failure,
		Transaction: said.Transaction,
		Description: said.Description,
	})
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
