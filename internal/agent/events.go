package agent

import (
	"context"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/agent/eventlog"
	"github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// eventsDir is where Puppet runs write what happens.
func (d *daemon) eventsDir() string {
	if len(d.primaries()) == 0 {
		return "" // no server that would take them
	}
	return filepath.Join(d.Data, "events")
}

// keepEvents sends what runs write, as they write it. An agent without it does its work all the same: the reports
// say it in the end.
func (d *daemon) keepEvents(ctx context.Context) error {
	dir := d.eventsDir()
	if dir == "" {
		return nil
	}
	kept, err := eventlog.Open(dir, eventlog.DefaultLimits(), d.log)
	if err != nil {
		d.log.ErrorContext(ctx, "events of Puppet runs are not sent while they happen", "err", err)
		return nil
	}
	defer func() { _ = kept.Close() }() // it only watches
	r := events.New(events.Config{Log: kept, Send: d.link.Send, Slog: d.log})
	d.sender.Store(r)
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = kept.Run(ctx) // it ends with ctx
	}()
	err = r.Run(ctx)
	cancel()
	<-watched
	return err
}

// receive takes a message of the server.
func (d *daemon) receive(ctx context.Context, m wire.Message) {
	switch {
	case m.Type == wire.ErrorMessage && m.InReplyTo != "" && d.introduced.Load() == m.InReplyTo:
		text, _ := wire.ParseError(m.Data)
		d.log.DebugContext(ctx, "the server does not want to know which modules this agent has; it may be of an older version", "text", text)
		return
	case m.Type != wire.RunEventsTaken:
		d.engine.Handle(ctx, m)
		return
	}
	taken, err := pxp.ParseRunEventsTaken(m.Data)
	if err != nil {
		d.log.WarnContext(ctx, "an answer to events cannot be read, they are sent again", "err", err)
		return
	}
	if r := d.sender.Load(); r != nil {
		r.Taken(taken)
	}
}
