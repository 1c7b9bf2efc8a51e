// Package history keeps in short which calls of actions were made that only read: who asked what of how many nodes, when, and how many
// nodes ended in which state. What nodes answered is not kept, nor are secrets of the input. Calls that change something are jobs.
//
// # Bounds
//
// A record is written once, when its call ends or who asked has left. There are at most MaxCalls: an older one makes room. Texts of a
// record have at most MaxText bytes.
//
// # Failure
//
// A record that cannot be written is logged: its call was answered all the same.
//
// # Errors
//
// Unavailable: the store does not answer. NotFound: no such call.
//
// # Concurrency
//
// A Keeper may be used concurrently.
package history
