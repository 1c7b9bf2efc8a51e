// Package task knows the tasks of a version of code: which there are, what their
// metadata says, which files a node needs to run one, and whether the parameters
// that somebody gives fit.
//
// A task is an executable in the tasks directory of a module. A JSON file of the
// same name describes it; without one everything is allowed. Reading is pure: all
// comes from a [Version], nothing is kept.
//
// # Errors
//
// NotFound: no such task or module. Invalid: the metadata is wrong (the error names
// the file), or parameters do not fit (the error names each of them, never a value).
//
// # Bounds
//
// A metadata file has at most 1 MiB, a task at most 1000 files, parameters at most
// 16 MiB as JSON.
//
// # Concurrency
//
// All functions may be called concurrently; what they return is the caller's.
//
// # Sources
//
// Puppet's task specification 1 (puppetlabs/puppet-specifications, tasks/README.md)
// and what Puppet 7.23 takes for a task (lib/puppet/module/task.rb).
package task
