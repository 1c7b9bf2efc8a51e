// Package datatype understands Puppet's data types as far as plain JSON values go:
// it reads a type expression such as Struct[{port => Integer[1, 65535]}], and says
// whether and where a value does not fit.
//
// Tasks and actions check their parameters with it before anything is sent.
//
// # What it covers
//
// Every type that a JSON value can be an instance of, and aliases, which a module
// defines in types/*.pp and which a [Resolver] looks up. Types without JSON values
// (Regexp, Timestamp, Callable, Type and the like) are known and match nothing.
// Sensitive[T] takes what T takes: who reads JSON has no other way to write it.
// Init, Object and TypeSet are not known. A regular expression has a time limit.
//
// # Errors
//
// Parse and ParseAlias return [*SyntaxError]; Check returns [*Mismatch], or the
// error of the resolver.
//
// # Concurrency
//
// A Type is never changed and may be used concurrently.
//
// # Sources
//
// The Puppet language specification, "Types and values" (Puppet 7); what Puppet
// 7.23 answers is compared in the tests.
package datatype
