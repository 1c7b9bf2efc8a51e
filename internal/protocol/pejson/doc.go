// Package pejson is the form in which clients of Puppet Enterprise's services read answers and errors: JSON always, also of
// what is not there. The edges that speak for these services (orchestrator, RBAC, Code Manager) use it, so that the form has one place.
//
// An error is {"kind": "puppetlabs.SERVICE/WORD", "msg": "...", "details": {...}}. A Service is the words of one service with
// their statuses, and what the six kinds of fault are called there. Routes answers paths and methods; what it does not know,
// and bodies that are no JSON, end as such an error, too.
//
// # Errors
//
// Handlers return a *Problem, or any other error, whose fault.Kind decides. The log has internal errors; callers are shown a reference.
//
// # Concurrency
//
// A Service and its handlers may be used concurrently.
package pejson
