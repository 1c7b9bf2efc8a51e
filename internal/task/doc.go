// Package task reads the tasks of a version of code: it lists them with their metadata, finds the files that a
// node needs to run a task, and checks the parameters that a user gives.
//
// A task is an executable in the tasks directory of a module. A JSON file of the same name describes it;
// without one everything is allowed. Reading is pure: all input comes from a [Version], and nothing is kept.
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
// All functions may be called concurrently. Their results belong to the caller.
//
// # Sources
//
// Puppet's task specification 1 (puppetlabs/puppet-specifications, tasks/README.md) and the rules by which
// Puppet 7.23 finds tasks (lib/puppet/module/task.rb).
package task
