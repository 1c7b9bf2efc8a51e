// Package codecheck finds the mistakes in a version of code before nodes get the version.
//
// Story: a version is staged, and compared with the last version of its environment that was deployed and
// checked. Puppet's own parsers (Parser) read the files that differ and that Puppet reads. If they can be read,
// catalogs are compiled for nodes whose catalogs read a file that differs: for one node of each set of classes, and for
// others until each such file is read by one of them, at most Config.Nodes, by the compiler that will compile for them later. What
// the compiler warns of, and which changed files nobody read, is part of the result, a Report. A version with mistakes is refused; a version
// with only warnings and notes is not.
//
// # What counts as a mistake
//
// A file that Puppet cannot read is a mistake, whether or not a node uses it. A catalog that does not compile
// is a mistake, unless it fails with the same error with the environment's current version: then the new
// version is not the reason, and refusing it could keep a correction out. A mistake that was deployed by force
// stays a mistake until it is mended: reports are kept (Store), and their files are read again. Mistakes in
// files that nothing is known to read (code.Source.Loose) are warnings.
//
// # Errors
//
// Unavailable when the check could not run, or when a compilation could not be tried: then nothing is deployed.
// NotFound for a version that is not stored.
//
// # Concurrency
//
// A Service may be used concurrently.
package codecheck
