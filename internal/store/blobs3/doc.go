// Package blobs3 keeps blobs in a bucket of an S3 store; it implements cas.Store, cas.Batcher, cas.Linker and cas.Filler.
// Any number of servers may use the same bucket at the same time.
//
// # Layout
//
//	<prefix>/tutti-store        the name of this store: random, given when it is first used
//	<prefix>/blobs/ab/ab...     one object for each blob
//	<prefix>/readers/<random>   somebody reads beside the servers: nothing is removed while it is young (a minute)
//	<prefix>/probe-<random>     a check whether objects can be written; removed at once
//
// # Marks
//
// What is stored, and how old it is, is said by marks in the records (cas.Marks), not by the bucket: S3 cannot make an object
// younger, cannot remove one only if it is old, and tells times to a second. A writer announces content, puts the object, then
// notes that it arrived. Whoever finds a mark has found the blob, so content that is there costs one statement and no request
// to the store. A Sweep gives up old marks first, then removes their objects, then forgets the marks; who wants such content
// meanwhile waits a moment and puts it again. A sweep that dies leaves marks that are given up for two minutes (leaveWithin);
// a request of it that removes something ends in a quarter of that.
//
// The records know the name of the store that their marks are of. Open looks whether it is this one. If not (another bucket, a
// restored database, content that was copied into it), the bucket is listed once and marks are made from that.
//
// # Cache
//
// Blobs are read through a Cache on the local disk, whole: a reader gets a file whose content was compared with its digest.
// What is put is kept there, too. Without room on that disk, blobs are read from the store itself: up to 8 MB in memory, larger
// ones as they come.
//
// # Failure
//
// Every request ends: the store may be silent for Timeout, and content must come with 64 KiB a second. Requests are repeated
// twice. Once the store cannot be reached, one request a second tries it, and the others are refused at once.
//
// # Errors
//
// As the port says. Unavailable for a store that cannot be reached, is full, refuses the credentials, or has no such bucket, and
// for records that cannot be asked; Sweep: also while somebody reads beside. Its sentences name the store, but no credentials.
//
// # Concurrency
//
// Every method may be called concurrently, on any number of servers.
package blobs3
