// Package diff shows the differences between two catalogs, and groups the nodes that differ in the same way.
//
// Story: Parse reads a stored document, or a catalog as an agent is given it. It cuts resources out and decodes
// none. Compare compares two such catalogs: resources that are byte for byte the same are dropped, the others
// are compared parameter by parameter, hashes and arrays down to the place that differs. The Difference is
// complete: applied to the old catalog it gives the new one. Because it is complete it may hold secrets, so it
// has no exported fields: a Shower makes the form that people and programs may see (api.CatalogDifference),
// bounded and with secrets hidden. A Grouper takes the differences of many nodes and keeps one group for each
// change. WriteText and WriteMarkdown print this form.
//
// These are not differences: the file and line that a resource was declared in, the path of a static file below
// its environment, the stamp of a catalog. These are counted as "order only": before, require, notify,
// subscribe and tag, the tags of resources, edges of containment, the order of resources, the order of keys in
// a hash.
//
// Forms: where another engine compiled the new catalog (AcrossEngines), parameters that are one value in two forms
// are named as its noise: forms says which. They are changes all the same.
//
// Files: the content of a File is text in its parameters, or a checksum in the metadata of a static catalog.
// Both are shown alike, as a unified diff. The content of a digest is read through Blobs, bounded.
//
// Secrets: hidden are parameters that Puppet marks as sensitive (or that hold a
// Sensitive value) on either side; all but a few parameters of a resource whose show_diff is not
// true, and of fragments that target it; and any other value that contains such a secret of
// eight bytes or more. Titles are names and are always shown. Keys of groups are
// HMACs, so that a value that can be guessed cannot be confirmed from them.
//
// Errors: Invalid for a document that is no catalog. An error of Blobs is no error of a difference: the
// difference then says that the content cannot be read.
//
// Concurrency: Compare, Shower and all functions are pure, but for Blobs. A Grouper
// may be used by many goroutines at once. A Catalog and a Difference refer to the
// document that they were read from: nobody may change it.
//
// Units: sizes are bytes of UTF-8, positions in a list start at 0.
package diff
