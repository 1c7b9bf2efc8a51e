// Package target says which nodes are meant by an order: a job, a preview, a release, or a mode of delivery names nodes, groups,
// queries, applications or all, and gets a sorted list of nodes.
//
// Resolver answers job.Targets; it asks the groups, the inventory, applications, and who is connected. Groups lists the
// members of groups among the nodes that the inventory knows. Nodes that had a certificate and have no good one are not
// meant by all.
//
// Gate answers job.Gate: it says which of those nodes an actor may not give an order to, by their grants. Scopes asks the inventory which
// nodes the condition of a grant holds for.
//
// Errors: Invalid for a condition that cannot be used or means too many nodes, and NotFound for a group or application that is
// not there; errors of ports are passed on. All methods may be called concurrently.
package target
