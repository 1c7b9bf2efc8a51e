package tls

import "net"

// BufferBytes is what the tls.Conn above a connection has allocated for reading; -1 if that is not known.
func BufferBytes(below net.Conn) int {
	c := below.(*conn)
	if in := c.front.innards; in != nil {
		return in.rawInput.of(c.above).Cap() + in.handshake.of(c.above).Cap()
	}
	return -1
}

// ReadProxyHeader is what a Front reads with.
var ReadProxyHeader = readProxyHeader
