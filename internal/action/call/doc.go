// Package call asks an action of many nodes at once and gathers their answers as they come. It stores nothing: what changes
// something is a job.
//
// # What becomes of a node
//
//	asked ──► answered: done, aborted, unknown action, missing data, invalid data, error
//	  │ ▲
//	  │ └ it has a new connection, whether or not the old one was seen to end: it is asked again; it is heard once
//	  ├──► no answer   the time is over, and it is connected
//	  └──► left        the time is over, and it is not
//	not connected ──► offline
//	ctx is done ──► not asked, or no answer
//
// Every node of a call ends in one of these states, and is told exactly once. A node that answers twice is heard once.
//
// # Batches
//
// With Batch, so many nodes are asked at a time. The next batch begins when all of the one before have answered or their time is over, and
// Sleep has passed.
//
// # Bounds
//
// Answers that were not handed over yet take at most AnswerBytes, over all calls: while there are more, nodes wait. A single answer of
// more is an error of its node.
//
// # Concurrency
//
// A Caller may be used concurrently. tell is called by one goroutine at a time.
//
// # Sources
//
// PXP 1.0: an action is asked by a blocking request. All nodes of a call are asked with the same transaction.
package call
