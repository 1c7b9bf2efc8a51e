// Package event is the stream of what happens in Puppet runs: every event of every run, as it happens,
// in one row of numbers.
//
// A node sends the events of its runs in batches; Take gathers what comes, stores it together, and tells each
// node up to which event it is stored. What a stock agent says in its report becomes the same rows
// when the report is there. Readers ask for what is behind the number that they have seen last.
//
// # Numbers
//
// Event.N is the node's: from 1, without gaps, in each run. A node sends again what was not acknowledged; what is
// stored already is passed over, and what would leave a gap is not taken: the acknowledgement says what is wanted.
// Event.Number is the server's: it grows over all runs in the order in which transactions commit. Who has
// read up to a number never misses a smaller one that comes later.
//
// # The life of a run
//
//	          begin, resources              end
//	(nothing) ────────────────► streaming ─────────► ended ───┐ report: compared
//	    │                           │ report, and silence      ▼
//	    └───────────────────────────┴───────────────────► settled
//	      report without a stream: made from it    what is missing is added from it
//
// A report replaces nothing. What it has and the stream has not is added behind it, and counted, unless the node
// itself said that it had to drop events; what the stream has and the report has not is counted. Of a run that has
// ended, by the word of its node or of its report, nothing more is taken.
//
// # Limits
//
// While RoomBytes of batches are on their way into the store, their nodes wait. One read looks at no more than
// a window of numbers.
//
// # Errors
//
// Unavailable from Take when the server stops or the caller gives up; those of the store from the rest.
//
// # Concurrency
//
// A Service is safe for concurrent use. Run owns two goroutines: one stores, one settles.
package event
