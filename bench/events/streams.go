package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// stream is a node whose runs are made up: what brings their events to the server is the agent's own.
type stream struct {
	name      string
	link      *connection.Link
	sender    *events.Sender
	log       *machine.Log
	connected chan struct{}
}

func newStream(name, url string, identity *tls.Config) (*stream, error) {
	s := &stream{name: name, log: machine.NewLog(), connected: make(chan struct{}, 1)}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	s.link, err = connection.New(connection.Config{
		URLs: []string{url}, URI: wire.NewURI(name, "agent"), TLS: func() (*tls.Config, error) { return identity, nil }, UserAgent: "tutti-agent/bench", Log: quiet,
		Receive: s.receive,
		Connected: func() {
			s.sender.Connected()
			select {
			case s.connected <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return nil, err
	}
	s.sender = events.New(events.Config{Log: s.log, Send: s.link.Send, Slog: quiet})
	return s, nil
}

func (s *stream) receive(m wire.Message) {
	if m.Type != wire.RunEventsTaken {
		return
	}
	if taken, err := pxp.ParseRunEventsTaken(m.Data); err == nil {
		s.sender.Taken(taken)
	}
}

// live keeps the connection, and sends what is written, until ctx is done.
func (s *stream) live(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return s.link.Run(ctx) })
	work.Go(func() error { return s.sender.Run(ctx) })
	return work.Wait()
}

// write is a run with one event after the other.
func (s *stream) write(ctx context.Context, events int, every time.Duration) error {
	run := uuid.NewString()
	s.log.Write(run, false, pxp.RunEvent{N: 1, Kind: pxp.RunBegan, At: time.Now().UTC(), Environment: "production"})
	for n := range events {
		if err := measure.Settle(ctx, every); err != nil {
			return err
		}
		s.log.Write(run, false, pxp.RunEvent{
			N: n + 2, Kind: pxp.ResourceEvent, At: time.Now().UTC(), Environment: "production", Status: "success",
			Type: "File", Title: fmt.Sprintf("/srv/%s/%d", s.name, n), Property: "ensure", Name: "file_created",
			Message: "defined content as '{sha256}" + strings.Repeat("0", 64) + "'",
			Old:     jsontext.Value(`"absent"`), New: jsontext.Value(`"file"`), File: "/code/manifests/site.pp", Line: 2,
			Containment: []string{"Stage[main]", "Main", fmt.Sprintf("File[/srv/%s/%d]", s.name, n)},
		})
	}
	s.log.Write(run, true, pxp.RunEvent{N: events + 2, Kind: pxp.RunEnded, At: time.Now().UTC(), Environment: "production", Status: "changed"})
	return nil
}
