package tls

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// A protocol with thousands of idle connections parks them: it takes a connection
// over from net/http, watches its file descriptor, and reads when there is
// something to read, until Read says that there is nothing. What it needs for that
// is the conn below the tls.Conn (its NetConn).

// OnClose calls hook when the connection is closed, by whomever; at once if it is closed
// already. The hook must be quick. The last hook counts.
func (c *conn) OnClose(hook func()) {
	c.mu.Lock()
	c.hook = hook
	over := c.over
	c.mu.Unlock()
	if over {
		hook()
	}
}

// SyscallConn gives access to the file descriptor.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if inner, ok := c.Conn.(syscall.Conn); ok {
		return inner.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// nothing is the error of a Read for which nothing has come. crypto/tls takes a
// temporary error as no harm: what it has of a record stays, and the next Read goes on.
type nothing struct{}

func (nothing) Error() string   { return "nothing to read" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }
func (nothing) Is(target error) bool {
	return target == os.ErrDeadlineExceeded
}

var _ net.Error = nothing{}
