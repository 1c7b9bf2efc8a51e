// Package bus carries messages between the servers that use the same records.
//
// A message here is a hint, or a request whose sender tries again: nothing depends on its arrival. A server that hears nothing
// finds in the records what it was not told, only later.
//
// # Subjects
//
// A subject is words with dots between them, such as tutti.hint. A subscription may have the word * in place of one word, and
// the word > in place of one or more at the end. A server subscribes to a few subjects, whatever the number of nodes is.
//
// # Delivery
//
// What one server publishes comes to each subscription of the others in its order, or not at all; it never comes to the server that
// published it. Of all subscriptions with the same group, one gets a message.
//
// # Failure
//
// Nothing here waits for a bus that is away: Publish and Request are Unavailable at once. Messages are lost while it is away, and when
// a subscriber is too slow: it has a bound. Both are told to the subscriber afterwards (Subscriber.Gap), and counted.
//
// # Errors
//
// Unavailable: the message went nowhere, or nobody knows. NotFound: nobody subscribed to what was requested. Invalid: the
// message is too large. A request ends with the error of who answered: its kind, its sentence and its hint come along.
//
// # Concurrency
//
// All of it may be used concurrently. Each subscription takes one message at a time.
package bus
