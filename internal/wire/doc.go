// Package wire holds the words of the Puppet Communications Protocol: messages,
// the URIs that name who sends and who receives them, and the data of the
// messages that the protocol itself uses.
//
// A Message is the same whatever version it came in. PCP 2 is one JSON object
// in a text message of a websocket; PCP 1 is a binary message of a version byte and
// chunks, of which the first is a JSON envelope and the second the data. A
// Version decodes and appends its own form, so decoding one and appending the other
// translates. What PCP 1 has more (expiry, destination reports, debug chunks) no
// broker has used since PCP 2: it is checked for its shape and dropped.
//
// # Bounds
//
// The size of a whole message is the reader's business. Here the envelope is
// bounded: MaxURIBytes, MaxTypeBytes, MaxIDBytes, MaxTargets.
//
// # Errors
//
// Every error is a fault of kind Invalid that names the field and its shape.
//
// # Concurrency
//
// Messages are values; Data is shared and never written to. Decode keeps nothing
// of what it was given.
//
// # Sources
//
// PCP specifications 1.0 and 2.0, and the behaviour of the original broker 2.0 where they differ.
package wire
