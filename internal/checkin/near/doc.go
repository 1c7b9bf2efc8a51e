// Package near lets a server that stands near its nodes, and far from the records, go on while it cannot reach them.
//
// Story: a Link asks the records every second whether they are there. While they are, every request goes to them, as on other
// servers. When two questions in a row got no answer the Link is cut: calls that wait for the records are ended, and what nodes
// send is taken into a Queue on this server's own disk. Each piece is acknowledged when it lies there. When the Link is back, a
// Courier hands the pieces to the records in the order in which they came, and takes each off the queue when it is stored.
//
// # Exactly once
//
// A piece may be handed over twice: this server may be killed between the two, and a call that was cut off may have been
// stored. So each has an identity that the records know: a report its digest, facts the time at which they were taken (older
// ones change nothing), submissions their number, events the number in their run.
//
// # States
//
//	reached --two questions without an answer--> cut --an answer--> reached (and the queue drains)
//
// # A full queue
//
// What does not fit any more is refused with Unavailable, and words that say why. Nothing that was acknowledged is thrown away.
// What the records refuse for good, for example facts that they cannot keep, is set aside: it stays on the disk, is logged and counted, and takes of
// the queue's room until somebody has it tried again, or deletes it.
//
// # Concurrency
//
// All methods may be called concurrently. Link.Run and Courier.Run are the only loops, each run once.
package near
