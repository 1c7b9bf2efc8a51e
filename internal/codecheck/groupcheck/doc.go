// Package groupcheck compares groups with the code and the nodes that they name.
//
// Groups may name what is not there: code and nodes come later. Then the group gives no catalog, or matches no node, and nobody is told. So
// whoever shows or changes a group is told what nothing has: classes and parameters that the code of the group's environment does not define,
// facts that no node has, pinned nodes that nobody knows.
//
// Story: for the classes that groups name, the manifests that may define them are found as Puppet's autoloader does (code.Autoload), and read by
// Puppet's own parser (Reader). What a file defines is remembered by its content. classify.Group.Doubts decides what is said.
//
// # Errors
//
// Those of the ports. Where manifests cannot be read, the answer says so instead.
//
// # Concurrency
//
// A Service may be used concurrently.
package groupcheck
