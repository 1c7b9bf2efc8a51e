// Package jobtest has the in-memory store of jobs, and the suite that every
// store of jobs passes.
//
// Concurrency: a Store is safe for concurrent use.
package jobtest
