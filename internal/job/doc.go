// Package job gives one order to many nodes and keeps the result of each.
//
// A user orders a Job: its targets are resolved, the user's rights are checked for each target, and the job is
// stored with a Run for each node. From then on the rows are the job. The dispatcher (Dispatch of Service) sends
// each run's order to its node after the row says so. The answers of nodes move the rows to their next state.
// An order's transaction is its run's ID, a random UUID made with the row; agents run a transaction once,
// however often it arrives, so an order is sent again until its node acknowledges it.
//
// # States of a run
//
//	          Connected               Accepted
//	waiting ────────────► sent ─────────────────► running
//	 │   ▲ did not leave  │ │  sent again             │
//	 │   └────────────────┘ │                         │
//	 │                      ├─ refused, errored ──────┤  the node's word
//	 ├─ offline             ├─ succeeded, failed ─────┤
//	 ├─ skipped             ├─ killed, timed_out ─────┤  it was told to stop
//	 └─ errored             └─ lost ──────────────────┘  nobody knows
//
// Run.Step is the only way from one to the next. The last state of a run never changes. A run that was told to
// stop ends as killed or timed_out, even if its agent cannot stop it, unless its node says that it succeeded
// before.
//
// # States of a job
//
//	queued ──► running ──┬───────────────► finished, failed
//	    │          │     │
//	    └──────────┴──► stopping ────────► failed, stopped
//	      stopped, or the failure budget is used up
//
// Job.Advance and Job.Direct are the only ways. The status follows from the counts of runs by
// state, which are stored with the job and agree with its rows. A job whose runs all succeeded is finished.
//
// # Order
//
// A run of an ordered job begins when all runs have succeeded that it waits for (Job.Edges). As soon as one of
// these ended without success, the run is skipped, with all runs that wait for it; the reason names the node
// whose run was tried first. Runs that do not depend on it go on. The edges are those at the time of the order;
// a job whose edges have no order is refused.
//
// # Changes
//
// Every visible change of a run or of the job's status takes the next number of its job. A row has the number
// of its latest change, so the rows themselves are the stream of changes: a reader who has seen the number n
// asks for the rows with higher numbers.
//
// # Failure
//
// Nothing is sent before the row says so. A server that starts reads the runs that have not ended and goes on:
// it sends orders again that no node acknowledged, and asks nodes about acknowledged runs when they connect,
// and from time to time. Answers of agents may come late, twice, or never; every run reaches a final state, by
// an answer or by time. Hints (Came, Wait) may be lost: each costs one look.
//
// # Time
//
// A run whose order was acknowledged may take Timeout from then on. After that its node is told to stop it, and
// has StopGrace to do so. If the node is away when its job is killed, it has Reconnect. A run that its node
// does not acknowledge is lost after Timeout. If a node is not connected when the turn of its run comes, the
// job waits for it until WaitOffline after the job was made.
//
// # Silence
//
// Only silence of a connected node loses a run before its time: Questions without an answer, over at least
// Silence. An answer of any kind, and a new connection, begin the count anew; it is kept in memory only. The
// reason of a run that has not ended gives its current situation. If an agent says that it does not know a run,
// the server does not believe the agent for Settle after its connection replaced another one, and while several
// agents seem to share the node's certificate (Link).
//
// # Output
//
// The output of a run is kept as lines, standard output first, in chunks of about 64 KiB, at most
// MaxOutputBytes. Runs with the same output have the same Output.Digest.
//
// # Secrets
//
// The secrets of an order are kept encrypted until its job has ended, and are never shown.
//
// # Units
//
// Times are instants, with microseconds in the store; sizes are bytes; numbers of runs, lines and changes begin at 1.
//
// # Errors
//
// Invalid: the error names the field of the order. NotFound: no such job. Denied: the error names the right
// that the caller lacks. Conflict: the job cannot be repeated yet. Unavailable: the store or a queue is full.
//
// # Concurrency
//
// Run blocks, and ends every goroutine that it starts. All other methods may be called concurrently.
package job
