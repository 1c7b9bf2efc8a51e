// Package bulk lets requests and answers between servers be larger than the bus carries: an order with much input reaches a node of any server.
//
// What is too large lies as content in the store that the servers share, and the message says where. It is encrypted there: it may
// have secrets, and content stays until it is swept. The key is new for each message, and is in the message alone.
//
//	content NUL {"digest": "sha256:…", "key": "…"}
//
// A message of that look which is small travels the same way, so that nothing is taken for another thing.
//
// # Failure
//
// What the store cannot keep or give just now is tried again for about a second, and then is Unavailable, as with a bus that is away. What was
// swept, or is not what was put there, is Internal.
//
// A server of a version that knows nothing of this answers with an error: its nodes get what is small.
//
// # Concurrency
//
// As of the bus below.
package bulk
