package connection

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/fault"
)

// maxAnswerBytes bounds the answer to an upgrade.
const maxAnswerBytes = 64 << 10

// dial opens a websocket. The context bounds all of it.
func (l *Link) dial(ctx context.Context, s server) (net.Conn, input, error) {
	raw, err := l.addresses.open(ctx, s.host, s.port)
	if err != nil {
		return nil, input{}, absence{err}
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, in, err := l.handshakes(raw, s)
	if !stop() && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s: %w", fault.Duration(l.cfg.ConnectTimeout), ctx.Err())
	}
	if err != nil {
		_ = raw.Close()
		return nil, input{}, err
	}
	return conn, in, nil
}

// absence is why nobody was reached: no server has work with such an attempt.
type absence struct{ error }

func (a absence) Unwrap() error { return a.error }

// absent says whether an attempt failed because nobody was there.
func absent(err error) bool {
	_, nobody := errors.AsType[absence](err)
	return nobody
}

// handshakes are TLS and the upgrade.
func (l *Link) handshakes(raw net.Conn, s server) (net.Conn, input, error) {
	conn := raw
	if s.secure {
		config, err := l.cfg.TLS()
		if err != nil {
			return nil, input{}, err
		}
		config = config.Clone()
		if config.ServerName == "" {
			config.ServerName = s.host
		}
		conn = tls.Client(raw, config)
	}
	upgrader := ws.Dialer{
		Header: ws.HandshakeHeaderHTTP{"User-Agent": {l.cfg.UserAgent}},
	}
	limited := struct {
		io.Reader
		io.Writer
	}{io.LimitReader(conn, maxAnswerBytes), conn}
	buffered, _, err := upgrader.Upgrade(limited, s.url)
	if err != nil {
		return nil, input{}, explained(err, s)
	}
	in := io.Reader(conn)
	if buffered != nil { // frames that came together with the answer
		early, _ := buffered.Peek(buffered.Buffered())
		in = io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn)
		ws.PutReader(buffered)
	}
	return conn, input{bufio.NewReaderSize(in, headBytes), l.cfg.MaxMessageBytes}, nil
}

// explained makes sense of an answer that is no upgrade.
func explained(err error, s server) error {
	status, ok := errors.AsType[ws.StatusError](err)
	switch {
	case ok && int(status) == http.StatusNotFound:
		return fmt.Errorf("the server does not know %s (404); is this the address of a Tutti server or PCP broker?", s.url.Path)
	case ok:
		return fmt.Errorf("the server answers %s with %d %s instead of a websocket", s.url.Path, int(status), http.StatusText(int(status)))
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the server closed the connection without an answer")
	}
	return err
}
