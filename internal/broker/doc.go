// Package broker connects controllers with agents over PCP: it keeps the list of connected clients, sends each
// message to its targets, and answers the sender when a message cannot be delivered.
//
// An edge accepts a connection, takes the client's name from its certificate, and Joins it. The broker answers
// with a Session, or with a Farewell that gives the reason for the refusal. The edge hands every message that
// it reads to Session.Receive. When it is woken, it writes the messages that Session.Next gives. A message for
// the broker itself goes to the handler that the server registered for its type; any other to the session of
// its target.
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
// Only an open session is in the inventory. The later connection of the same URI supersedes the earlier one in
// one step: the URI never has two sessions, and is never without one in between. The earlier one's client is asked
// whether it is still there. One that answers, again and again, is another agent with the same certificate (Rivals).
//
// # Who may send what
//
// A rule (rule.go) names a message type, senders and receivers. The first rule that matches decides; a message
// that matches no rule is refused. By default nodes may send only to the controller side: to the server, and
// answers to controllers.
//
// # Full queues
//
// Every session has a bounded queue of messages that its client has not read yet. The broker closes a session
// whose queue is full: no sender waits for a slow reader, and no single message disappears silently. All queues
// together have a bound, too; beyond it the sender gets an error.
//
// # Time
//
// Messages do not expire: PCP 1 has a field for that, but no broker has used it for years, and the clocks of
// clients are wrong. A target that is not connected is an error at once.
//
// # Other servers
//
// The brokers of servers with the same records (Others) know each other's clients. Each writes who comes and leaves into the records (Roster), in
// batches, and then tells the others; each compares what it knows with the records, and ends sessions whose client came later to another server. A
// message for a client of another server is passed to its broker, which queues it, or says why not. Limits count here only.
//
// # Errors
//
// Join returns a Farewell. Send returns NotFound (not connected), Unavailable (too much is queued, or its server gives no answer) or Invalid.
// If an incoming message causes an error, its sender gets the error.
//
// # Concurrency
//
// A Broker is safe for concurrent use. Receive of one session is called by one goroutine at a time, in the
// order in which messages came; so is Next. RunSeats runs once. Locks: publishing, then either the broker's or a queue's; those two never together.
//
// # Sources
//
// The original broker 2.0, whose texts and close codes clients know.
package broker
