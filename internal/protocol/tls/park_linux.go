package tls

import (
	"io"
	"syscall"
)

// ReadWhatIsThere makes Read return os.ErrDeadlineExceeded where it would wait.
// It is called when nobody reads.
func (c *conn) ReadWhatIsThere() error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	c.raw = raw
	return nil
}

// receive reads what is there, or waits for something.
func (c *conn) receive(p []byte) (n int, err error) {
	if c.raw == nil {
		return c.Conn.Read(p)
	}
	var failed error
	err = c.raw.Read(func(fd uintptr) bool {
		n, failed = ignoringEINTR(func() (int, error) { return syscall.Read(int(fd), p) })
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case failed == syscall.EAGAIN: //nolint:errorlint // a bare error number
		return 0, nothing{}
	case failed != nil:
		return 0, failed
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func ignoringEINTR(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != syscall.EINTR { //nolint:errorlint // a bare error number
			return n, err
		}
	}
}
