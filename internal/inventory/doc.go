// Package inventory stores the data of each node: facts, catalogs, reports, events, and changes.
//
// Facts are stored as differences: one document for each node, and one row for
// each fact path, of which only those that changed are written.
//
// The form of facts is package facts, which the agent shares. Catalogs and reports of nodes are read in one pass
// (package facts/scan), bounded in bytes, depth, rows and length of paths.
//
// Stores keep times to the microsecond; the times inside a report's logs,
// resources and events are kept as they were sent.
//
// Errors: NotFound for an unknown node or report; Invalid for facts and reports
// that break the rules (the detail names the field); Unavailable when the disk
// is full or the store is busy.
package inventory
