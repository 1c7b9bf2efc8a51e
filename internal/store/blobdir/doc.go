// Package blobdir keeps blobs as files of a directory; it implements cas.Store,
// cas.Batcher, cas.Linker and cas.Filler.
//
// # Layout
//
//	<dir>/lock           held by the process that uses the store
//	<dir>/tmp/           what is being written; emptied at start
//	<dir>/corrupt/       what did not have its digest any more, for people to look at
//	<dir>/blobs/ab/ab... one file per blob, mode 0444, in 256 directories
//
// The 256 directories are made once. A second level was left out: it would cost
// a new directory, and its sync, for nearly every blob of a small store, and file
// systems of today look names up in a directory of 100 000 as fast as in one of 10.
//
// # Durability
//
// A blob is visible only after its bytes are on the disk (sync, then rename), and
// Put returns only after its name is too. Writers who arrive while the disk is
// busy are committed together: one sync of the file system serves all of them,
// which is what makes thousands of small files cheap. PutAll commits its blobs in
// batches the same way. Syncing the file system also writes what others have
// dirty on it; that is a matter of time, not of safety.
//
// # Verification
//
// A blob is read and compared with its digest before Open returns it, once per
// process for each state of its file (inode, size, time of change). After that it
// is an *os.File of known content: net/http sends it with sendfile, and
// nothing wrong ever leaves the server. A Put counts as verified. Blobs that fail are moved
// to corrupt/ and are missing from then on. What happens to a file behind our back
// that changes neither its size nor its time is found after the next start.
//
// # A cache
//
// A Cache is such a directory of blobs that another store has: it takes no more than so many bytes, removes first what was
// used longest ago, and remembers that through restarts (a modification time is its last use, to ten minutes). It brings
// nothing to the disk by itself: what a crash takes or damages does not have its digest, is removed when it is opened, and
// is fetched again.
//
// # Errors
//
// As the port says. Unavailable for a full or read-only disk names the directory
// and what to do; Conflict when another process uses the store.
//
// # Concurrency
//
// Every method may be called concurrently. Each of the 256 directories has a
// lock that is held while a blob appears, is renewed (its modification time is
// its age) or is removed, so that Sweep cannot take a blob that a writer was
// just told to be there. Reading takes no lock.
package blobdir
