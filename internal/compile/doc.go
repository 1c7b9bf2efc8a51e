// Package compile gives nodes their catalogs. It decides which catalogs are compiled, when, and by which
// compiler.
//
// A wanted compilation is a row in the Queue, at most one for a node, environment and version. A Dispatcher
// leases rows when its worker slots are free, makes the Order from the node's data, has the Compiler compile
// it, stores the document, then the rows that queries read, and finishes the row last. The Service answers a
// node that asks: it enters the wanted compilation, waits a moment for the row to end, and renders the stored
// document, or it tells the node when to come back. The Warmer starts the compiler of a version before anybody
// asks.
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
// Done and failed rows are history; Prune forgets them. A leased row is held by its worker and attempt: only
// they can finish it. An attempt ends in one of four ways: a catalog (done); an *Error (failed); something that
// could not be tried, such as a full disk (the row rests for 1, 2, 4 … 60 s with its Trouble, then comes back,
// and is failed after MaxAttempts if somebody waits for it, else after AheadMax; never for an error
// that says when to come back, as of a content store that is away: who waits is told of the trouble); or its lease was lost, or its
// node was purged or left (the result is thrown away). A lost lease is no attempt, and four attempts for which
// no compiler was available count as one, because a killed server or a busy machine is not the row's fault. An
// attempt during which the compiler died counts.
//
// A failed compilation is tried again when somebody wants it again. If nobody waits,
// the same order was compiled lately and the code was wrong, the known error is the
// answer.
//
// # Order
//
// Lease takes rows from lanes, the wanted rows of a priority and an environment: see NextLane. An environment
// has a share of a Dispatcher's slots while others have work; a compilation that runs for longer than a slice
// is stopped for those who wait, and rests for a moment: see fairness.stop. It is no attempt. If compilations
// of an environment take too long again and again, the environment is slowed: see Slowdown. A Pause, of one
// environment or of all, is a row, too: while it exists, Lease takes nothing, on all servers. The number of
// compilations that a Dispatcher starts depends on the load that the Gate allows: see next.
//
// A staged row's catalog is stored but does not become its node's newest: it is compiled ahead, to be released
// or only to be shown. If the same compilation is wanted without staging, the row becomes plain, even while it
// is leased.
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
// While code compiles, it may query data of other nodes: it collects exported resources and calls
// puppetdb_query. The Compiler passes such questions on to the Inventory. The Outcome contains the questions,
// with a digest of each answer, and the collected resources with their exporters; the latter are stored with
// the catalog.
//
// # Inputs
//
// The Outcome also has everything that the compilation read (Reads): values of facts, files of the version that
// were read or looked for, inputs that cannot be followed. Together with digests of the values, the
// classification and the answers, these are the compilation's InputSet, which is stored with the row. Holds is
// the pure decision whether an InputSet still holds. The Reuser gathers the data for that decision, cheapest
// first, and answers a Wish with the stored catalog, for another version by a new row (Restate). The Service
// asks the Reuser before it wants a compilation, the Dispatcher before it compiles. One in so many reuses is
// wanted again with Checks set, compiled without reuse, and compared.
//
// # Ahead of requests
//
// A Wanter decides which catalogs are wanted before their nodes ask. The causes are new code, changed facts and
// groups that the catalog read, changed exports that it collected, a new certificate, and the age of the
// catalog. The store notes each change in the transaction that makes it, so no crash loses a change. For a new
// version the Wanter compares the files that differ with the Footprint of each compilation, each group of
// sources once. Nodes that read none of these files get no row: their Standing moves on, and the first request
// restates it. Nodes in released mode are compiled staged. Catalogs that follow each other's exports in a cycle
// are stopped after Rounds, and reported.
//
// # Errors
//
// *Error is a compilation that gave no catalog; it is stored and shown. NotFound for an environment without a
// version; Invalid for configuration and for documents that are no catalogs; Unavailable with RetryAfter for a
// catalog that is not ready; errors of the stores are passed on.
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
