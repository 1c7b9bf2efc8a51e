package server

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// openEvents wires the stream of events to its neighbours.
func (p *parts) openEvents() {
	p.events = event.New(event.Parts{
		Store: p.near.stream(p.store.Events), Now: time.Now, Relay: p.relay, Log: p.log.Logger,
		Tell: func(node fleet.Certname, taken pxp.RunEventsTaken) error {
			return p.broker.Take(context.Background(), wire.Message{
				ID: uuid.NewString(), Type: wire.RunEventsTaken, Sender: wire.Broker, Target: agentOf(node), Data: pxp.Data(taken),
			})
		},
	}, event.DefaultSettings())
	p.metrics.eventFigures(p.events)
}

// heardReports is the inventory's reports; the stream of events is told when one was stored.
type heardReports struct {
	inventory.ReportStore
	events *event.Service
}

// SaveReport implements inventory.ReportStore.
func (r heardReports) SaveReport(ctx context.Context, report inventory.Report) error {
	err := r.ReportStore.SaveReport(ctx, report)
	if err == nil {
		r.events.Reported()
	}
	return err
}

// eventFigures registers what the stream of events can be asked for.
func (m *metrics) eventFigures(events *event.Service) {
	figures := events.Figures
	for name, figure := range map[string]struct {
		help string
		of   func(event.Figures) int64
	}{
		"tutti_events_stored_total":         {"Events of runs that nodes sent, and that were stored.", func(f event.Figures) int64 { return f.Stored }},
		"tutti_events_repeated_total":       {"Events of runs that came again and were passed over.", func(f event.Figures) int64 { return f.Repeated }},
		"tutti_events_missing_total":        {"Events of runs that nodes had to drop.", func(f event.Figures) int64 { return f.Missing }},
		"tutti_events_from_reports_total":   {"Events of runs that were made from reports.", func(f event.Figures) int64 { return f.Reported }},
		"tutti_event_runs_settled_total":    {"Runs that were compared with their reports, or made from them.", func(f event.Figures) int64 { return f.Settled }},
		"tutti_events_only_in_report_total": {"Events that a report had and the stream of its run had not.", func(f event.Figures) int64 { return f.Lacked }},
		"tutti_events_only_in_stream_total": {"Events that the stream of a run had and its report had not.", func(f event.Figures) int64 { return f.Extra }},
		"tutti_events_unlisted_total":       {"Events of agents that came and went too often to be listed.", func(f event.Figures) int64 { return f.Unlisted }},
		"tutti_event_newest_number_total":   {"Number of the newest event.", func(f event.Figures) int64 { return f.Last }},
		"tutti_events_waiting_bytes":        {"Size of the events that are not stored yet.", func(f event.Figures) int64 { return f.Waiting }},
	} {
		value := func() float64 { return float64(figure.of(figures())) }
		if name == "tutti_events_waiting_bytes" {
			m.gauge(name, figure.help, value)
		} else {
			m.counter(name, figure.help, value)
		}
	}
}
