package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/wire"
)

// socket is a websocket of a client.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
}

// open shakes hands. The reader is small: the client's memory is not what is measured, but there are many.
func open(ctx context.Context, dialer *net.Dialer, address, path string, config *tls.Config) (*socket, error) {
	var conn net.Conn
	up := ws.Dialer{
		Timeout: time.Minute, ReadBufferSize: 512, WriteBufferSize: 512,
		NetDial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			raw, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			t := tls.Client(raw, config)
			if err := t.HandshakeContext(ctx); err != nil {
				_ = raw.Close()
				return nil, err
			}
			return t, nil
		},
	}
	conn, early, _, err := up.Dial(ctx, "ws://"+address+path) // TLS is done below
	if err != nil {
		return nil, err
	}
	var in io.Reader = conn
	if early != nil {
		in = io.MultiReader(early, conn)
	}
	return &socket{conn, bufio.NewReaderSize(in, 1024)}, nil
}

func (s *socket) send(m wire.Message) error {
	text, err := wire.V2.Append(nil, m)
	if err != nil {
		return err
	}
	_, err = s.conn.Write(ws.MustCompileFrame(ws.MaskFrameInPlace(ws.NewTextFrame(text))))
	return err
}

func (s *socket) receive() (wire.Message, error) {
	header, err := ws.ReadHeader(s.in)
	if err != nil {
		return wire.Message{}, err
	}
	payload := make([]byte, header.Length)
	if _, err := io.ReadFull(s.in, payload); err != nil {
		return wire.Message{}, err
	}
	if header.OpCode != ws.OpText {
		code, reason := ws.ParseCloseFrameData(payload)
		return wire.Message{}, fmt.Errorf("a frame of kind %x (%d %s)", header.OpCode, code, reason)
	}
	return wire.V2.Decode(payload)
}

// agent answers every order.
type agent struct {
	*socket
	ended chan struct{}
}

// associate waits until the broker knows the agent, and lets it answer.
func associate(s *socket) (*agent, error) {
	if err := s.send(wire.Message{ID: uuid.NewString(), Type: wire.AssociateRequest}); err != nil {
		return nil, err
	}
	if m, err := s.receive(); err != nil || m.Type != wire.AssociateResponse {
		return nil, errors.Join(err, fmt.Errorf("association: %s %s", m.Type, m.Data))
	}
	a := &agent{s, make(chan struct{})}
	go a.serve()
	return a, nil
}

// serve ends with the connection: whoever waits for an answer finds out.
func (a *agent) serve() {
	defer close(a.ended)
	for {
		m, err := a.receive()
		if err != nil {
			return
		}
		answer := wire.Message{
			ID: uuid.NewString(), Type: wire.BlockingResponse, Target: m.Sender,
			Data: jsontext.Value(`{"transaction_id":"` + m.ID + `","results":{}}`),
		}
		if a.send(answer) != nil {
			return
		}
	}
}

func (a *agent) close() {
	_ = a.conn.Close()
	<-a.ended
}
