// Package checkin gives a node that asks for it its catalog: it finds out who the node is, which environment and which
// version of code it gets, keeps its facts, and answers with the catalog that the node may have.
//
// Story: an edge reads a Request off the wire. Resolve settles everything about it once, in this order: what proves
// who the node is (Trust), its facts (stored before anything is compiled), its standing in delivery, its environment and
// the version of it (Environments). All of that is one value, a Visit, which travels with the request. Catalog answers a
// visit: with what was released to a node in released mode, and otherwise with the stored catalog that still stands, or
// with a fresh compilation. The way back is here, too: Results rules on a catalog that was compiled, and shows it; Runs
// says of a run of Puppet what its report and the node's compilations tell.
//
// # The environment of a node
//
// Environments is the only place that decides it. What was released to a node comes first, then what groups say, then what
// the node asks for, then the default.
//
// # Concurrency
//
// All methods may be called concurrently; the package starts no goroutines.
//
// # Errors
//
// NotFound for an environment without code, Invalid for groups that name such a one, Conflict for a node in released mode
// to which nothing was released, Unavailable (with a time to come back) for a catalog that is not ready; errors of ports are
// passed on.
package checkin
