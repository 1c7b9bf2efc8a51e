// Package codechecktest has what tests of checks of code need: a Store in memory, and the conformance suite of stores.
//
// All of it may be used concurrently.
package codechecktest
