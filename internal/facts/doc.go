// Package facts is the form of facts that a node's agent and the server share: how they are written so that equal
// facts are equal bytes, how two sets differ, and what a node says of its facts apart from a run.
//
// Canonical brings facts into their one form. The order in which a node told them is kept beside it (Arranged).
// Flatten lists every value by its path; Diff and Difference compare two sets, for the inventory and for the wire.
// A Submission is what an agent sends: all facts, or a difference, whose paths are JSON pointers. A catalog's
// inputs name facts with the same pointers: Glance returns the value that code sees at one.
//
// Errors are Invalid, and say what is wrong and where.
package facts
