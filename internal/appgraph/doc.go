// Package appgraph knows which nodes wait for which others, and why.
//
// Edges come from two sources, both read from the newest catalogs of active nodes. A node that
// collected what another one exported waits for that one. And a component of a declared application
// that consumes a capability waits for the components that produce it.
//
// # Applications
//
// A catalog declares them with resources of the Puppet module that comes with Tutti (Module): one of type
// tutti::component for each component that its node carries, and if somebody likes to say more about the
// application, one of type tutti::application in the catalog of any node. Names are references, Type[title]:
// the type of an application is its model, Shop, and the title its instance, eu. A component may be on several nodes,
// and a capability may have several producers: who consumes it waits for all of them. Capabilities are
// looked up within an environment.
//
// # Sharing
//
// Nodes that collect resources of one type from each other, as for the host keys of all, share them: no order
// follows from that, and those edges are left out (Map.Shared). Any other circle has no order, and is refused with its way.
//
// # Errors
//
// Invalid for names that are no reference, and for circles; NotFound for an application that nobody declares.
//
// # Concurrency
//
// All methods may be called concurrently. Nothing is kept: each answer is read from the store.
package appgraph
