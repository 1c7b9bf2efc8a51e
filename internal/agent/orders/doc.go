// Package orders is what a node does with the requests that it gets: it decides
// whether to run them, runs each transaction at most once, and sees to it that
// what was begun has one outcome, which is delivered.
//
// An Engine gets messages (Handle) and sends its answers through whatever
// connection there is (Connected). What a request asks for is an Action of a Module.
// Some are answered at once; the others are written into the Spool first, wait for a
// free place in their lane, prepare (download what they need), and then run a
// program through the Runner, which outlives the agent, or do their work inside it.
//
// Below an Engine: modules find what an order asks for, turns know what is not over and whose turn it is, answers write to those who
// asked, and outcomes are delivered, now or when there is a connection.
//
// # States of a transaction
//
//	request ──► waiting ──► preparing ──► running ──► success ─────┐
//	   │           │            │            ├──────► failure ─────┼──► delivered
//	   │           │            │            └──────► undetermined ┘
//	   │           └────────────┴─ cancelled, or the agent was restarted: failure
//	   └ not accepted: an error is the answer, and nothing was begun
//
// The record in the spool says running from the moment that a request is accepted, and
// success, failure or undetermined once it ended; what is between is only known to the
// process. After a restart a program that still runs is adopted; one that ended is
// concluded from what it left; what had not begun never will: its parameters
// are not on the disk. Undetermined is a program that vanished without an exit code.
//
// # Delivery
//
// The outcome of a non-blocking request that wants one is sent when it is there, or
// as soon as the agent is connected again, also by a later process. It counts as
// delivered when a connection took it: killed in that moment, an agent sends the
// same outcome again. Answers to blocking requests are sent once, or not at all.
//
// # Full queues
//
// Programs run in two lanes: one Puppet run at a time, and MaxConcurrent others. What the node itself
// wants (Begin, Await) waits in the same lanes; nobody is told of it. When
// a lane's queue is full the transaction fails at once, with a description that
// begins with pxp.Full.
//
// # Full disks
//
// An order that cannot be kept is refused, and not run. A copy of it that comes when there is room is
// refused too, by the same process: the newest 1000 such transactions are remembered. An
// end that cannot be kept is told all the same; after a restart it is concluded, and told, again.
//
// # Concurrency
//
// An Engine is safe for concurrent use. It holds no goroutine and no timer while
// it has nothing to do, so that thousands of them fit in one process.
//
// # Errors
//
// What a requester did wrong, or what went wrong, is sent to it in the words of
// the original agent. Errors that are returned concern the spool.
//
// # Sources
//
// The PXP specification 1.0 and the behaviour of pxp-agent 1.15. Unlike it, an
// agent delivers outcomes after a restart, keeps no blocking request's results,
// never runs a transaction that failed before, and says so when a queue is full.
package orders
