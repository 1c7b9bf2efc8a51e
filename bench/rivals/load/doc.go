// Package load is the client that puts every server under the same load: a
// fixed number of workers, each with one connection that it keeps, HTTP/1.1
// over TLS as a puppet agent speaks it.
//
// It reads responses through net/http's parser but without its Transport, whose
// goroutines and locks cost more than a small file does; on a machine where client
// and server share the cores the client's cost is part of every figure.
//
// # Errors
//
// The first error of any worker ends the run: a benchmark with failing requests
// measures nothing. An answer 503 with Retry-After is no error but an order to wait, as a stock
// agent takes it; the wait is part of the request's time.
//
// # Concurrency
//
// A [Conn] belongs to one goroutine. [Run] starts and ends its workers itself.
package load
