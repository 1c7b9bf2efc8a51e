// Package diff says what differs between two catalogs, and which nodes differ in
// the same way.
//
// Story: Parse reads a stored document, or a catalog as an agent is given it. It
// cuts resources out and decodes none. Compare takes two of them apart: resources
// that are byte for byte the same are dropped, the others are compared parameter by
// parameter, hashes and arrays down to the place that differs. The Difference is
// whole: applied to the old catalog it gives the new one. Because it is whole it
// may hold secrets, and nothing of it is exported: a Shower makes of it what people
// and programs may see (api.CatalogDifference), bounded and with secrets hidden.
// A Grouper takes the differences of many nodes and keeps one group for each change.
// WriteText and WriteMarkdown print what was shown.
//
// What is no difference: the file and line that a resource was declared in, the
// path of a static file below its environment, the stamp of a catalog. What is told
// apart and counted as "order only": before, require, notify, subscribe and tag, the
// tags of resources, edges of containment, the order of resources, the order of keys in a hash.
//
// Files: the content of a File is text in its parameters, or a checksum in the
// metadata of a static catalog. Both are shown alike, as a unified diff; what a
// digest names is read through Blobs, bounded.
//
// Secrets: hidden are parameters that Puppet marks as sensitive (or that hold a
// Sensitive value) on either side; all but a few parameters of a resource whose show_diff is not
// true, and of fragments that target it; and any other value that contains such a secret of
// eight bytes or more. Titles are names and are always shown. Keys of groups are
// HMACs, so that a value that can be guessed cannot be confirmed from them.
//
// Errors: Invalid for a document that is no catalog; those of Blobs are not errors
// of a difference: what cannot be read is said to be so.
//
// Concurrency: Compare, Shower and all functions are pure, but for Blobs. A Grouper
// may be used by many goroutines at once. A Catalog and a Difference refer to the
// document that they were read from: nobody may change it.
//
// Units: sizes are bytes of UTF-8, positions in a list start at 0.
package diff
