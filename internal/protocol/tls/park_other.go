//go:build !linux

package tls

// receive waits for something to read: connections are parked on Linux only.
func (c *conn) receive(p []byte) (int, error) { return c.Conn.Read(p) }
