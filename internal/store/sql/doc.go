// Package sql keeps every record of Tutti in SQL: SQLite in one file by
// default, PostgreSQL 15 or newer past one machine.
//
// Open gives a Store. Its parts are small types, one for each area: Facts, Jobs, Queue,
// Authority and so on. Each satisfies the ports of its core, as ports.go lists them, and
// stands on base: the connections, the one writer and the dialect.
//
// The statements are the same for both databases; what differs stands in
// sqlite.go and postgres.go. Text is compared bytewise on both.
//
// # Writing
//
// SQLite has one writer. Whoever wants to write joins a bounded queue; one of
// those who wait becomes the leader, runs what is queued in one transaction, each
// act behind a savepoint so that a bad one fails alone, and commits. Everybody
// is answered after the commit has reached the disk (WAL, synchronous=FULL). So
// a thousand small writes share a few dozen fsyncs, and no goroutine has to run.
// A full queue answers Unavailable with a time to come back.
// PostgreSQL batches commits itself: each act is an ordinary transaction there,
// repeated when it lost against another. But its statements cost as much as its
// rows, so what comes often and at the same time (reports) is gathered into few.
//
// Costly work happens before an act joins the queue: reading what is stored,
// comparing, compressing. The act then checks that what was read still holds.
//
// # Units
//
// Times are microseconds since 1970 in UTC; zero stands for "none". Documents
// (facts, report bulk) are JSON under zstd. Digests are text.
//
// # Errors
//
// Faults of the ports pass as they are. A full disk, a read-only file system, a
// lost connection and a full queue are Unavailable; a second server on the same
// file is Conflict; a damaged file is Internal and its detail says what to do.
//
// # Concurrency
//
// A Store may be used by any number of goroutines, on PostgreSQL by any number
// of processes. A SQLite file belongs to one process, which holds a lock on it;
// on PostgreSQL a server makes its records its own with Claim.
package sql
