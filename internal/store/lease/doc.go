// Package lease keeps what must exist once among servers that share their records: each such work is done by the
// holder of its lease, and by nobody else.
//
// A lease is a row: who holds it, until when, and a number, its token. Whoever gets a lease gets a higher token than all
// holders before it. The token is checked in each write of its holder, in the same transaction (the fence): a holder that
// was frozen, cut off or slow, and lost its lease without noticing, writes nothing any more.
//
// # States
//
//	            Acquire                    Renew
//	free ------------------> held -------------------> held
//	 ^                        |  until passes            ends later
//	 |        Release         v
//	 +---------------------- held or over -- Acquire by anybody --> held by them, with the next token
//
// The same holder may acquire what it holds: it has started again. What it did before is over, and is fenced off.
//
// # Clock
//
// Whether a lease is over is told by the clock of the records. A server that holds one measures only how long ago it
// asked, by its own monotonic clock, and stops its work before the lease can be over. No two clocks are compared.
//
// # Failure
//
// A holder that dies is followed by another one when its time is over: with Shared, within 15 seconds of its death. A
// holder that cannot reach the records stops its work after Timing.Stop, and begins again when it has the lease again.
//
// What a work does besides its writes (an order to a node, content in a store) is not fenced. It must come after a fenced
// write, and be harmless when it comes twice.
//
// # Errors
//
// A write of somebody whose lease has gone is Unavailable.
//
// # Concurrency
//
// All of it may be used concurrently. A work that runs under a lease may write from many goroutines.
package lease
