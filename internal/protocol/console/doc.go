// Package console serves the pages for browsers and, to the same origin, the API.
//
// The pages are files that `make console` builds from the folder console at the root; they are committed below dist, so that a build
// of the program needs no Node. The pages use the public API only. What this package adds is what a browser needs and a program
// does not: a session in a cookie that scripts cannot read, and a token against forged requests on every act. It knows
// nobody: it turns the cookie into the Authorization header that the API understands.
package console
