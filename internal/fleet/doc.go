// Package fleet defines the basic types that every other package uses: node names, environments, digests,
// actors. Types are small and do no I/O. A type moves here when a second core needs it.
//
// Errors: every Parse function returns a fault of kind Invalid that names the
// value's shape.
package fleet
