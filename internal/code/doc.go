// Package code knows the environments' Puppet code: what a version is, what
// lies where in it, and which version an environment uses now.
//
// A version is a manifest: the list of an environment's files, each with its
// path, mode and digest. The digest of the manifest's canonical form names the
// version, so identical trees are one version, wherever they came from. Blobs
// hold the files and the manifest; rows only say which version an environment
// has, and since when.
//
// A Tree answers questions about one version without touching the files:
// modules on the module path, file server mounts, metadata.
//
// Errors: NotFound for an unknown environment, version or path; Invalid for a
// manifest that breaks the rules; Conflict when a manifest names blobs that are
// not stored.
package code
