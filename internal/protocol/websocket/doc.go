// Package websocket carries PCP over websockets: it brings the messages of thousands of
// connections to the broker, and the broker's to them.
//
// A Server is an http.Handler. It takes a connection over from net/http, says 101, and
// Joins it to the broker as what its client certificate proves; a refusal follows as a close
// frame, as clients expect it.
//
// # Idle connections
//
// On Linux an idle connection has no goroutine and no buffer, not even crypto/tls's. It is watched by
// epoll; when bytes come, one of a few workers reads until crypto/tls has nothing more to give. Writing
// is done by workers, too, when the broker wakes a connection. A worker that is held up by one connection is
// replaced, so that a slow one costs a goroutine and nobody's time. On other systems, and over
// listeners that cannot be watched, each connection reads in the goroutine that net/http gave it.
//
// # States of a connection
//
//	open ──► closing ──► ended
//	  │  farewell   peer's close frame, end of stream, CloseTimeout
//	  └──────────────────► end of stream, Drop, revoked certificate
//
// While closing, what the broker had queued is written, then the close frame. What the peer
// still sends is read and thrown away: a socket closed with unread bytes
// is reset, and the reason would be lost.
//
// # Limits
//
// A message may have MaxMessageBytes (close 1009), unfinished messages of all connections together
// PartialBytes (close 1013). Large messages are read a few at a time (large.go): their senders wait. A connection that sends no whole frame for IdleTimeout
// goes (1001); a ping is enough, and is answered. A write that makes no progress for WriteTimeout ends its connection.
//
// # Errors
//
// A client's mistake becomes a close frame. Run returns what the system refused.
//
// # Concurrency
//
// A Server is safe for concurrent use. One goroutine at a time reads a connection, and one writes.
//
// # Sources
//
// RFC 6455; the original broker 2.0 for codes and texts.
package websocket
