// Package puppet speaks the Puppet HTTP API version 3 with stock agents
// (Puppet 7 and 8): what node am I, give me my catalog, these files, here are
// my facts and my report.
//
// A request passes four gates before its handler runs: the route must exist for
// the method, the actor must be allowed (a node asks only for itself; files are
// for any node of the fleet), the query must be short and well formed with a
// valid environment, and its class of work must have a free place. Catalogs
// with facts, files, backups on their way, and reports are separate classes, so
// that load on one never starves another. Who does not get a place is told to come back: stock
// agents repeat a request by themselves after 503 with Retry-After.
//
// The handler owns only the wire: form and JSON bodies, formats, compression,
// ranges, error texts. What it needs to know comes through the ports in
// ports.go and through the stores of the cores.
//
// # Paths
//
// The handler must see the path as it was sent. A backup's path holds two
// slashes in a row, which [net/http.ServeMux] would answer with a redirect.
// Mount the handler before any mux that cleans paths.
//
// # Units
//
// Sizes are bytes after all decoding: of facts after both percent decodings, of
// a compressed body after decompression.
//
// # Errors
//
// Every error is answered as Puppet Server words it: JSON with message and
// issue_kind, the message's prefix naming the class; a refusal is plain text.
// Internal errors show a reference only; the log has the cause under it. Blobs
// that are found corrupt while they are sent end in a broken connection, never
// in a whole answer.
//
// # Concurrency
//
// The handler may be called concurrently; it starts no goroutines. A body that
// is refused is still read (up to a limit), because a stock agent looks for the
// answer only after it has sent everything.
//
// # Sources
//
// Puppet 7.23 and 8.11 (what agents send and expect), Puppet Server 7.9 and 8.7
// (what they are answered).
package puppet
