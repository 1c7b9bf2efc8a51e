// Package inventory stores the data of each node: facts, catalogs, reports, events, and changes.
//
// Facts are stored as differences: one document for each node, and one row for
// each fact path, of which only those that changed are written.
//
// Input from nodes is read in one pass over the text (scan.go), bounded in bytes, depth, rows and length of
// paths. It is brought into a canonical form in which equal values are equal bytes. Diff compares two such
// forms.
//
// Agents submit facts apart from runs, whole or as a difference (Submission, Patch). Their paths are JSON
// pointers; a catalog's inputs name facts with the same pointers. Glance returns the value that code sees at a
// path.
//
// Stores keep times to the microsecond; the times inside a report's logs,
// resources and events are kept as they were sent.
//
// Errors: NotFound for an unknown node or report; Invalid for facts and reports
// that break the rules (the detail names the field); Unavailable when the disk
// is full or the store is busy.
package inventory
