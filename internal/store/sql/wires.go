package sql

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// wires are the connections to a PostgreSQL. A database that is reached and gives no answer (its machine hangs, the network loses everything) would
// keep for good whoever waits for it, so all of them can be cut.
type wires struct {
	mu   sync.Mutex
	open map[*wire]bool
}

// dialing dials with dial, and remembers the connections.
func (l *wires) dialing(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		made := &wire{Conn: conn, of: l}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open == nil {
			l.open = map[*wire]bool{}
		}
		l.open[made] = true
		return made, nil
	}
}

// cut ends all connections: whoever waits for an answer on one gets an error.
func (l *wires) cut() {
	l.mu.Lock()
	all := make([]*wire, 0, len(l.open))
	for one := range l.open {
		all = append(all, one)
	}
	l.mu.Unlock()
	for _, one := range all {
		_ = one.Close()
	}
}

type wire struct {
	net.Conn
	of *wires
}

// Read implements net.Conn. An end that the database did not announce is an error of the network, as every other loss of the connection.
func (l *wire) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = &net.OpError{Op: "read", Net: l.RemoteAddr().Network(), Addr: l.RemoteAddr(), Err: io.ErrUnexpectedEOF}
	}
	return n, err
}

// Close implements net.Conn.
func (l *wire) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}
