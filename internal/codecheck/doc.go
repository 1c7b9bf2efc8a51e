// Package codecheck says what is wrong with a version of code before nodes get it.
//
// Story: a version is staged, and compared with the one that its environment was deployed with and checked last. Files that Puppet
// reads and that differ are read by Puppet's own parsers (Parser). If they can be read, nodes whose catalogs read what differs are
// compiled: one of each set of classes, at most Config.Nodes, by the compiler that will compile for them later. What comes of it is a
// Report: mistakes, for which a version is refused; warnings and notes, for which it is not.
//
// # What counts as a mistake
//
// A file that Puppet cannot read is one, whether or not a node uses it. A catalog that does not compile is one, unless it fails in the same
// words with the version that the environment has: then the new version is not the reason, and refusing it would keep the mending
// out. What was forced in stays a mistake until it is mended: reports are kept (Store), and their files are read again.
// What nothing is known to read (code.Source.Loose) gives warnings.
//
// # Errors
//
// Unavailable when the check could not be made: then nothing is known, and nothing is deployed. A compilation that
// cannot be tried counts like that, too. NotFound for a version that is not stored.
//
// # Concurrency
//
// A Service may be used concurrently.
package codecheck
