// Package compiletest holds what tests of the compile queue need: RunQueue, the
// conformance suite of compile.Queue and compile.History; Queue, the in-memory
// queue that passes it; Compiler, a compiler that does as it is told; and small
// fakes of the other ports.
//
// Concurrency: every fake may be used from many goroutines.
package compiletest
