// Package natsbus carries messages between servers over NATS; it implements bus.Bus with NATS core: nothing is stored there.
//
// A server has one connection, a fixed number of subscriptions, and one for the answers to its requests.
//
// # Failure
//
// Open does not need NATS to be there. A connection that breaks, or is silent for about six seconds, is made anew for as long as the
// server runs, with any of the servers of NATS that were named or that these name. Nothing is buffered for later meanwhile: whoever
// sends learns at once that it went nowhere. Each change is logged once.
//
// # Who may
//
// Whoever may publish below the prefix in NATS speaks for a server, and can order nodes. A NATS server needs authorization, with
// credentials that only servers have.
package natsbus
