// Package classifier speaks version 1 of the node classifier's HTTP API, below
// /classifier-api/v1, over the groups of package classify: for clients that manage
// the groups of Puppet Enterprise.
//
// A group of the classifier has no pinned nodes of its own: its rule is an `or` with
// a branch ["=", "name", NODE] for each. Here such branches become pinned nodes, and
// pinned nodes are shown as such branches. A group that leaves its environment to
// those above is shown with the one that it inherits (agent-specified when there is
// none), and writing that back changes nothing.
//
// Everything is for administrators.
//
// # Not here
//
// Classes and their parameters (/classes, /environments/E/classes): whether these
// exist is found out by the compiler. The history of check-ins (/nodes), which
// reports have, and how a classification came about (`tutti group explain`).
//
// # Errors
//
// The body of an error is {"kind", "msg", "details"}; problem.go is the table of
// kinds. Internal errors are logged and shown as a reference only.
//
// # Concurrency
//
// Handlers may run concurrently. A change without serial_number is repeated when
// somebody else changed the group meanwhile; one with is refused.
//
// # Sources
//
// Puppet Enterprise's documentation of the node classifier service API, and what its
// public clients send.
package classifier
