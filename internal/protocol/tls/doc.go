// Package tls is the one TLS listener that every protocol comes in by.
//
// A Front wraps a net.Listener. It hands out *tls.Conn values that have not shaken
// hands yet: net/http does that in the goroutine that serves the connection, so
// that a slow client holds up nobody, and HTTP/2 stays possible. What the Front
// adds sits below, in the net.Conn, and in the TLS configuration:
//
//   - A client certificate is asked for, and verified if one is given: by chain, time
//     and purpose (crypto/tls answers with the fitting alert: unknown authority,
//     expired), then against what was revoked (alert: bad certificate).
//   - Handshakes take turns. A turn is needed to compute, and given back while
//     waiting for the client's bytes, so a client that stalls holds none. Waiting for
//     a turn is first come, first served, and ends with the handshake's deadline.
//   - Connections are counted. When MaxConnections are open, newcomers wait in
//     the kernel's queue until one ends.
//   - Connections from one address, and those without a client certificate, have limits of their own (Limits);
//     who is above them is refused. Networks can be exempt: of load balancers, behind which all have one address.
//   - Load balancers that are named (ProxiedFrom) say whose connections they pass on, in a PROXY header before TLS. The client's address
//     is then what is counted, logged and given to handlers. A header from anybody else is refused, and so is a connection of
//     theirs without one; it has to come within HandshakeTimeout.
//   - Open connections are known by their certificate's serial number, and are
//     closed when that is revoked.
//   - A connection that was taken over from net/http can be parked: see OnClose, SyscallConn and
//     ReadWhatIsThere of what a tls.Conn's NetConn gives; and made slim: ForgetPeer, ForgetBuffers.
//
// Certificate and CA pool can be exchanged at any time; open connections stay.
//
// Configure prepares a http.Server, Identify puts a fleet.Actor into every request's
// context. Handlers find the verified certificate in Request.TLS.VerifiedChains.
//
// Errors: Accept returns only what the inner listener returns. New returns Invalid.
//
// Concurrency: a Front is safe for concurrent use. It starts no goroutines; a
// timer ends a handshake that takes too long.
package tls
