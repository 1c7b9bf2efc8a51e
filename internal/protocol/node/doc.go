// Package node serves Tutti's own agents over HTTP, below Prefix: what a node may
// have, the documents of its catalogs, the modules of actions that its code supplies, and its facts.
//
//	GET /node/v1/catalog          200 the pointer, with an ETag; 304; 404: the node has no catalog yet
//	GET /node/v1/catalogs/DIGEST  200 the document whose SHA-256 is DIGEST, gzip where asked for; 304; 404
//	GET /node/v1/modules          200 which modules of actions its code supplies (package supply), with an ETag; 304
//	GET /node/v1/modules/DIGEST   200 the file of one of them whose SHA-256 is DIGEST; 304; 404
//
//	PUT /node/v1/facts            all facts, PATCH a difference against a base; 200 stored, 202 stored and not applied yet;
//	                              409 it does not fit: send all, with a number above that in the answer
//	GET /node/v1/facts            what the server has of them
//
// A node asks for itself: who it is says the certificate that it shows, and there is no
// way to name another. It may fetch the document of its pointer and those of its kept
// generations, and the files of its modules; anything else does not exist for it.
//
// A pointer costs lookups: a thousand nodes that ask at once compile nothing. Documents
// are streamed, and only so many at a time, as submissions of facts are taken; who waits too long is told when to come back.
//
// # Errors
//
// An error is an api.Problem with the status of its kind; Unavailable also has a
// Retry-After.
//
// # Concurrency
//
// The handler may be used concurrently.
package node
