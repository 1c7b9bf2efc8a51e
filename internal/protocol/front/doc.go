// Package front is what every request passes before the route that serves it, whoever sent it.
//
// A request gets an id that its log lines, its error answers and its entry in the audit log share. Its body is bounded
// in size by its Route, in time by its size, and in memory by a Budget that all requests share; callers who proved
// nothing have a small part of it. What goes wrong with a body is answered in JSON, in the form that the clients of the
// path read. Each request is counted and, if that is wanted, logged; a handler that panics takes no other request with it.
//
// A Handler may be used by any number of goroutines at once. It expects the actor in the request's context, as
// protocol/tls puts it there.
package front
