// Package job gives one order to many nodes and knows what became of each.
//
// Somebody orders a Job: its targets are resolved, who asks is checked against each of
// them, and the job is stored with a Run for each node. From then on the rows are the
// job. The dispatcher (Run of Service) sends each run's order to its node, once its row says so,
// and what nodes answer steps the rows on. An order's transaction is its run's ID, a
// random UUID made with the row; agents run a transaction once however often it
// comes, so an order is sent again until its node says that it has it.
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
// Run.Step is the only way from one to the next. The last state of a run never changes. A
// run that was told to stop ends as killed or timed_out, unless its node says that it
// succeeded before; also when its agent cannot stop it.
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
// A run of an ordered job begins when all runs have succeeded that it waits for (Job.Edges). As soon as one of these
// ended otherwise it is skipped, with all that wait for it, because of the node whose run was tried first. Runs that do not
// depend on it go on. The edges are those at the time of the order; a job whose edges have no order is refused.
//
// # Changes
//
// Every visible change of a run or of the job's status takes the next number of its job. A
// row has the number of its latest change, so the rows themselves are the stream of changes:
// who has seen the number n asks for the rows above it.
//
// # Failure
//
// Nothing is sent before the row says so. A server that starts reads what has not ended and
// goes on: orders that nobody acknowledged are sent again, and nodes are asked about
// runs that they have acknowledged when they connect, and from time to time. What
// agents answer may come late, twice, or never; a final state is reached in any case, by an answer or by time.
// Hints (Came, Wait) may be lost: each costs one look.
//
// # Time
//
// A run whose order was acknowledged may take Timeout from then on; its node is told to stop it
// then, and given StopGrace; one whose node is away when its job is killed, Reconnect. One that nobody acknowledges is lost after Timeout. A node that is not connected when the
// turn of its run comes is waited for until WaitOffline after the job was made.
//
// # Silence
//
// Only silence of a connected node loses a run before its time: Questions without an answer, over at least Silence. An answer of
// any kind, and a new connection, begin the count anew; it is kept in memory only. The reason of a run that has not ended says how
// things stand. What an agent does not know is doubted for Settle after its connection took the place of another one, and while several agents
// seem to share the node's certificate (Link).
//
// # Output
//
// What a run wrote is kept as lines, standard output first, in chunks of about 64 KiB, at most
// MaxOutputBytes. Runs with the same output have the same Output.Digest.
//
// # Secrets
//
// What is secret in an order is kept sealed until its job has ended, and never shown.
//
// # Units
//
// Times are instants, with microseconds in the store; sizes are bytes; numbers of runs, lines and changes begin at 1.
//
// # Errors
//
// Invalid names the field of the order; NotFound a job that is not there; Denied what who asks
// lacks; Conflict a job that cannot be repeated yet; Unavailable that the store or a queue is full.
//
// # Concurrency
//
// Run blocks and owns what it starts. All other methods may be called concurrently.
package job
