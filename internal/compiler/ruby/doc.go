// Package ruby compiles catalogs with the real Puppet compiler in Ruby
// processes. It implements compile.Compiler.
//
// Story: for each environment and version there is one zygote, a Ruby process
// that has loaded Puppet and the version's code and has learned from sample
// compiles, but never serves one. Workers are forked from it, so they start warm
// and share its memory; each compiles some orders and is replaced. Environments
// and versions never share an interpreter. The Ruby code lies in zygote/, is
// embedded in the binary and speaks the protocol of PROTOCOL.md.
//
// Questions: while it compiles, Ruby may ask the inventory: Puppet's collectors of
// exported resources by a terminus of our own, and code by puppetdb_query. The
// questions come over the socket that the order went by, and are answered before the
// catalog comes. Their number and the size of the answers are bounded.
//
// Engines: a Pool belongs to one installation of Puppet with its Ruby. Engines is several of
// them, and gives each order to the one that its version is for. An installation whose files
// change, as by an upgrade, is looked at anew: its zygotes end, what was being compiled is
// compiled again, and Engine has another name, so that stored catalogs do not stand.
//
// Limits: a compile has a time, a memory and a size limit; Go watches the first
// two from outside and kills the worker's process group, so that what generate()
// started ends with it. At most Config.Workers workers live at once, at most
// Config.Zygotes zygotes (least recently used ones end first).
//
// Errors: *compile.Error when the order has no catalog; a fault of kind
// Unavailable when the pool could not try (it is not running, a zygote died, or the
// inventory did not answer), then trying again is right; the context's error when the caller gave up.
//
// Failure: a dead worker is replaced and its order tried once more; a dead zygote
// is started again by the next order. When the server dies, zygotes see their
// standard input end and kill their workers; workers watch the zygote and the
// server the same way. Nothing outlives either.
//
// Concurrency: every method of Pool may be called concurrently. Run owns all
// goroutines and processes.
//
// Units: sizes are bytes, memory is resident memory including what a worker
// shares with its zygote.
package ruby
