// Package wire reads and writes the Puppet Communications Protocol (PCP): messages, the URIs of their senders
// and receivers, and the data of the messages that the protocol itself uses.
//
// A Message is the same in every version of the protocol. PCP 2 is one JSON object in a text message of a
// websocket; PCP 1 is a binary message of a version byte and chunks, of which the first is a JSON envelope and
// the second the data. A Version decodes and appends its own form, so decoding one and appending the other
// translates. No broker has used the further fields of PCP 1 (expiry, destination reports, debug chunks) since
// PCP 2: their form is checked, and they are dropped.
//
// # Bounds
//
// The reader bounds the size of a whole message. This package bounds the envelope: MaxURIBytes, MaxTypeBytes,
// MaxIDBytes, MaxTargets.
//
// # Errors
//
// Every error is a fault of kind Invalid that names the field and its shape.
//
// # Concurrency
//
// Messages are values; Data is shared and never written to. Decode keeps nothing of its input.
//
// # Sources
//
// PCP specifications 1.0 and 2.0, and the behaviour of the original broker 2.0 where they differ.
package wire
