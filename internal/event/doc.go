// Package event streams the events of Puppet runs, and of the life of agents: every event of every run, as it happens, numbered in one
// sequence.
//
// A node sends the events of its runs in batches; Take gathers the batches of many nodes, stores them together,
// and tells each node the last event that is stored. The events of a stock agent's report become the same rows
// when the report arrives. Readers ask for the events after the last number that they have seen.
//
// # Numbers
//
// Event.N is the node's: from 1, without gaps, in each run. A node sends events again that were not
// acknowledged. Take skips events that are stored already, and takes no event that would leave a gap: the
// acknowledgement names the event that is wanted. Event.Number is the server's: it grows over all runs in the
// order in which transactions commit. So a reader who has read up to a number never misses a smaller number
// that is committed later.
//
// # The life of a run
//
//	          begin, resources              end
//	(nothing) ────────────────► streaming ─────────► ended ───┐ report: compared
//	    │                           │ report, and silence      ▼
//	    └───────────────────────────┴───────────────────► settled
//	      report without a stream: made from it    what is missing is added from it
//
// A report replaces nothing. Events that only the report has are added after those of the stream. They are
// counted, unless the node itself said that it had to drop events. Events that only the stream has are counted.
// When the node or the report has ended a run, no more events of this run are taken.
//
// # Limits
//
// While RoomBytes of batches are on their way into the store, their nodes wait. One read looks at no more than
// a window of numbers.
//
// Events of agents (Agent) are news, not records: they are stored once a second, and a crash loses the last second of them. A node has 20 at
// once and 20 an hour, all nodes have 20 000 at once and 2000 a minute; what is beyond that is only counted, and the node's next one says how many
// those were.
//
// # Errors
//
// Unavailable from Take when the server stops or the caller gives up. All other methods return the errors of
// the store.
//
// # Concurrency
//
// A Service is safe for concurrent use. Run owns two goroutines: one stores, one stores what happens to agents. SettleRuns runs on one
// server at a time.
package event
