// Package connection is the client's side of the Puppet Communications Protocol: a Link keeps one
// connection to one of several brokers, for as long as it runs.
//
// A Link dials, proves who it is with a certificate, asks to be associated, and hands every message that
// comes to Receive, in order. When the connection is lost it tries the same server once more, then the
// next, and so on, with pauses that grow. A name that has several addresses is several servers of which none is preferred: they are tried in
// any order within one attempt, the one that was reached last at the end. Away from the first server it looks from time to
// time whether that one is back, and moves there without a gap.
//
// # States
//
//	         dial, TLS, upgrade, associated
//	waiting ───────────────────────────────► connected ───► waiting
//	   ▲  │ a pause: none at first             │    lost, farewell, no pong
//	   └──┘ failed: the next server            └─► connected to the first server
//
// An association is asked for in both versions of the protocol: a broker that refuses says so only after the
// upgrade, and what it answers tells for sure. A connection that ended soon after it began
// counts as a failure: else two clients with one certificate would supersede each other
// as fast as they can.
//
// # Pauses
//
// Before an attempt a Link waits for a random time below 2 s; after every failed round over all servers
// the bound doubles, up to 32 s; up to 8 s while nobody is there at a server's address. So clients are back within 10 s of their
// broker's return, spread over 8 s. Those that find it too busy to answer them spread over 32 s. A broker that refuses the certificate
// is asked every 32 s or so.
//
// # Limits
//
// A message may have MaxMessageBytes in either direction, QueueBytes may wait to be written; Send refuses what is
// more. Silence is noticed after PingInterval and PongTimeout, a write that makes no progress after WriteTimeout.
//
// # Errors
//
// Send returns Unavailable (not connected, or too much waits) and Invalid (no message, or too large a one).
// When it returns nil, the message has been written to the connection; whether it was read nobody knows.
// New returns Invalid. What fails while connecting is logged, and shown by State.
//
// # Concurrency
//
// A Link is safe for concurrent use. It has two goroutines: that of Run, and one that
// reads; a third only while it moves to another server. Receive is called by one at a time, and nothing is read meanwhile.
//
// # Sources
//
// RFC 6455; PCP 1.0 and 2.0; pxp-agent 1.15 for what brokers are used to.
package connection
