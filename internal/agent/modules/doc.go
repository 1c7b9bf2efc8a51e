// Package modules makes modules of a node's own executables, as the original agent
// has them (PXP's external modules).
//
//	MODULE metadata   prints what the module can do, with a JSON schema for input and results of each action
//	MODULE ACTION     reads {"input": ..., "configuration": ...} from standard input, prints its results as JSON
//
// An executable without an extension (on Windows .exe or .bat) in the modules' directory is a module of
// that name. Its configuration is NAME.conf in another directory, JSON that must fit the schema that the module
// gives for it. A module that cannot be used is logged and passed over; the others are there.
//
// The contract is the original's, but output_files is never given: whoever runs a program keeps its
// output. Modules that want that key must not be used here; none that is known does.
//
// # Bounds
//
// Metadata has at most 1 MB and is waited for 30 seconds; so many modules are loaded: 100.
// Schemas refer to nothing outside themselves.
//
// # Errors
//
// Load returns only errors of the directory, of kind Unavailable.
//
// # Concurrency
//
// Modules may be used concurrently.
package modules
