// Package appgraph tells in which order nodes depend on each other, and why, so that a job can run Puppet in
// that order.
//
// Edges come from two sources, both read from the newest catalogs of active nodes. A node that collected
// another node's exported resource waits for that node. A component of a declared application that consumes a
// capability waits for the components that produce this capability.
//
// # Applications
//
// A catalog declares them with resources of the Puppet module that comes with Tutti (Module): one of type
// tutti::component for each component of its node and, optionally, one of type tutti::application in the
// catalog of any node, which describes the application. Names are references, Type[title]: the type of an
// application is its model, Shop, and the title its instance, eu. A component may be on several nodes, and a
// capability may have several producers: a consumer waits for all of them. Capabilities are looked up within an
// environment.
//
// # Sharing
//
// Nodes that collect resources of one type from each other, for example all host keys, share these resources:
// no order follows from that, and those edges are left out (Map.Shared). Any other cycle has no order: it is
// refused, and the error names its path.
//
// # Errors
//
// Invalid for names that are no reference, and for cycles; NotFound for an application that nobody declares.
//
// # Concurrency
//
// All methods may be called concurrently. Nothing is kept: each answer is read from the store.
package appgraph
