// Package broker decides who is connected, where a message goes, and what
// happens when it cannot go there.
//
// An edge accepts a connection, knows from its certificate who it is, and Joins it; the
// broker answers with a Session or a Farewell that says why not. The edge hands every
// message it reads to Session.Receive, and writes what Session.Next gives when it is
// woken. A message for the broker itself goes to the handler that the server registered
// for its type; any other to the session of its target.
//
// # States of a session
//
//	         Receive, Next
//	           ┌───┐
//	Join ────► open ───────────► closing ───► gone
//	           │   refused, stopped    Leave    ▲
//	           └───────────────────────────────┘
//	             Leave, superseded, cut off
//
// Only an open session is in the inventory. The later connection of the same URI
// supersedes the earlier one in one step: there is never none and never two.
//
// # Who may send what
//
// Rules (rule.go) name a message type, who sends and who receives; the first that fits
// decides, and none means no. Without other rules nodes may talk to the controller side only:
// to the server, and answer controllers.
//
// # Full queues
//
// Every session has a bounded queue of what it has not read yet. A session whose queue is full
// is cut off: nobody waits for a slow reader, and no single message disappears
// silently. All queues together have a bound, too; beyond it senders are told.
//
// # Time
//
// Messages do not expire: PCP 1 has a field for that which no broker has looked at for years,
// and clients' clocks are wrong. A target that is not connected is an error at once.
//
// # Errors
//
// Join returns a Farewell. Send returns NotFound (not connected), Unavailable (too much
// is queued) or Invalid. What goes wrong with a message that came in is answered to its sender.
//
// # Concurrency
//
// A Broker is safe for concurrent use. Receive of one session is called by one goroutine at a time, in the
// order in which messages came; so is Next. Locks: publishing, then either the broker's or a queue's; those two never together.
//
// # Sources
//
// The original broker 2.0, whose texts and close codes clients know.
package broker
