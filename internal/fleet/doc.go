// Package fleet holds the words that every other package speaks: node names,
// environments, digests, actors. Types are small and do no I/O; a word moves
// here when a second core needs it.
//
// Errors: every Parse function returns a fault of kind Invalid that names the
// value's shape.
package fleet
