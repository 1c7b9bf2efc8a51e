// Package compile decides which catalogs are compiled, when and by whom, and
// gives nodes their catalogs.
//
// Somebody wants a compilation: a row in the Queue, at most one for a node,
// environment and version. A Dispatcher leases rows as its worker slots are
// free, makes the Order from what is known of the node, has the Compiler compile
// it, stores the document, then what can be asked about it, and finishes the
// row last. The Service is the other end: it wants the compilation that a node
// asks for, waits a moment for the row to end, and renders the stored document;
// or it says when to come back. The Warmer makes the compiler ready for a
// version before anybody asks.
//
// # States of a compilation
//
//	        Want           Lease            Finish
//	(none) ------> wanted --------> leased --------> done
//	                 ^               |  | `--------> failed
//	                 |               |  |              ^
//	                 `-------------- '  `--------------'
//	             ReturnLeases, or gone:    ReturnLeases, after
//	             folded into a twin        100 leases
//	             that is wanted already
//
// Done and failed rows are history; Prune forgets them. A leased row is held by
// its worker and attempt: only they can finish it. An attempt ends in one of
// four ways: a catalog (done); an *Error (failed); something that could not be
// tried, such as a full disk (the row rests for 1, 2, 4 … 60 s with its Trouble, then
// comes back, and is failed after MaxAttempts if somebody waits for it, else after
// AheadMax); or its lease was lost, or its node
// was purged or left (the result is thrown away). A lost lease is no attempt, and four
// in which no compiler could be had count as one: that the server was killed, or the
// machine had no time, is not the row's fault. One over which the compiler died counts.
//
// A failed compilation is tried again when somebody wants it again. If nobody waits,
// the same order was compiled lately and the code was wrong, the known error is the
// answer.
//
// # Order
//
// Lease takes rows from lanes, the wanted rows of a priority and an environment: see
// NextLane. An environment has a share of a Dispatcher's slots while others have work; a
// compilation that runs for longer than a slice is stopped for those who wait, and rests
// for a moment: see fairness.stop. It is no attempt. Where compilations take too long again
// and again, their environment is slowed: see Slowdown. A Pause, of an environment or of all, is a row, too: Lease takes nothing
// while it stands, on all servers. How many a Dispatcher starts depends on the room that
// the Gate sees: see next.
//
// A staged row's catalog is stored but does not become its node's newest: it is
// compiled ahead, to be released or only looked at. Who wants the same plain makes
// the row plain, also while it is leased.
//
// # Failure
//
// Everything is stored before the row is finished, so a crash repeats a
// compilation and never loses one. A dispatcher that starts takes back the
// leases of its worker name at once; those of others come back when they run
// out. Hints (Wake, Finished, Deployed) may be lost: each costs one poll.
//
// # Concurrency
//
// Run of Dispatcher and Warmer blocks and owns what it starts. All other methods
// may be called concurrently and none but Catalog waits. A Service holds at most
// MaxWaiters requests and tells the others to come back at once; a Dispatcher
// never runs more than Slots compilations; on a full machine one at most, and none in
// the background.
//
// # Questions
//
// Code may ask for what is known of other nodes while it compiles: it collects
// exported resources and calls puppetdb_query. The Compiler passes such questions on
// to the Inventory. What was asked, with a digest of each answer, and what was
// collected from whom are part of the Outcome; the second is stored with the catalog.
//
// # Inputs
//
// The Outcome also tells all that was read (Reads): values of facts, files of the
// version that were read or looked for, what cannot be followed. With digests of the
// values, the classification and the answers it is the compilation's InputSet, stored
// with the row. Holds is the pure decision whether it still holds; the Reuser gathers
// what is needed for that, cheapest first, and answers a Wish with the stored
// catalog, for another version by a new row (Restate). The Service asks it before it
// wants anything, the Dispatcher before it compiles. One in so many reuses is wanted
// again with Checks set, compiled without it, and compared.
//
// # Ahead of requests
//
// A Wanter decides whose catalog is wanted before its node asks: new code, facts and groups that
// the catalog read, exports that it collected, a new certificate, old age. The store notes
// each change in the transaction that makes it, so that no crash loses one. Of a new version it
// compares the files that differ with the Footprint of each compilation, each group of
// sources once; nodes that read none of them get no row: their Standing moves on, and the
// first request restates it. Nodes that only get what is released are compiled staged. Catalogs
// that follow each other's exports in a circle are stopped after Rounds, and said to be.
//
// # Errors
//
// *Error is a compilation that gave no catalog; it is stored and shown. NotFound
// for an environment without a version; Invalid for configuration and for
// documents that are no catalogs; Unavailable with RetryAfter for a catalog that
// is not ready; what the stores return is passed on.
//
// # Units
//
// Durations are time.Duration; sizes are bytes. Retry-After is in whole seconds
// from 1 to 30.
//
// # Sources
//
// Catalog wire format 2 as Puppet 7 and 8 write and read it; RFC 8259; agents
// repeat a request that was answered 503 with Retry-After up to 100 times.
package compile
