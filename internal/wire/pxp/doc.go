// Package pxp holds the words of the Puppet Execution Protocol: what a controller
// asks of an agent, and what the agent answers.
//
// A request names a module and one of its actions, and a transaction: an agent
// runs the same transaction at most once, also across its restarts. A blocking request is
// answered with its results. A non-blocking one is answered with a provisional
// response at once, and with the results when they are there, if the request says so. Who
// misses an answer asks for the status of the transaction, or sends the same request again.
//
// All messages are data of wire messages; their types are in package wire.
//
// # Modules
//
//	ping, echo, status          blocking only
//	command, script, task, file
//	pxp-module-puppet           a Puppet run
//	transaction                 Tutti's own: cancel one that runs. Blocking only
//	modules                     Tutti's own: which modules the node has, and what each can do. Blocking only
//
// # Units
//
// Times are RFC 3339 with fractions of a second, in UTC; digests are SHA-256 in lower case.
//
// # Bounds
//
// MaxParamsBytes of a request, MaxFiles of a task or a file order, MaxNameBytes of
// names. The size of a whole message is its reader's business.
//
// # Errors
//
// Every error is a fault of kind Invalid that names the field and its shape, never its value.
//
// # Concurrency
//
// Everything is a value.
//
// # Sources
//
// The PXP specification 1.0, and the behaviour of pxp-agent 1.15 where they differ. Keys
// that are not known are passed over, as there.
package pxp
