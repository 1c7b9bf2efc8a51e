// Package local keeps on a server's own disk what must last while the records cannot be reached: what nodes sent (near.Queue), and the catalogs
// that they may have (near.Shelf).
//
// It is one file of bbolt. Each write is a transaction with an fsync; those that come together share one. Everything in it is
// compressed, then sealed with a key of this server's data directory.
//
// # Bounds
//
// The queue and what was set aside take so many bytes together, counted as they are stored; what comes then is refused with Unavailable, and so is
// everything while admit refuses writes (a full disk). The file does not get smaller when the queue does: its room is used again.
//
// # Failure
//
// After a kill the file is as it was at the last acknowledged write. A file that is damaged is refused at the start: it may
// hold what was acknowledged.
package local
