// Package inventory is what is known of each node: facts, catalogs, reports,
// events, and what changed.
//
// Facts are stored as differences: one document for each node, and one row for
// each fact path, of which only those that changed are written.
//
// Errors: NotFound for an unknown node or report; Invalid for facts and reports
// that break the rules (the detail names the field); Unavailable when the disk
// is full or the store is busy.
package inventory
