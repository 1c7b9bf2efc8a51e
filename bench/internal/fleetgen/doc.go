// Package fleetgen makes up what a fleet sends: fact sets and reports of many
// nodes, the same ones for the same seed.
//
// A fact set has about 250 leaves: most are the same on every node (the
// operating system), some are the node's own (addresses, serial numbers), and
// about twenty change with each generation (uptime, load, memory, file systems),
// as between two runs of a real node.
//
// A report is a run over a hundred resources of which most are unchanged. It can
// be written as a puppet agent sends it (report format 12, every resource) and as
// the PuppetDB terminus sends the same run on (command `store report` version 8,
// only the resources with events, as its default is).
//
// # Concurrency
//
// A [Fleet] is immutable; its methods may be called by many.
package fleetgen
