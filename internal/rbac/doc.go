// Package rbac answers: who is it, may they do this with that, and what did they do.
//
// A user has roles, a role is a list of grants, a grant is a permission and the
// objects that it is good for. A user is a person, who logs in with a password
// and then shows a token, or a node, which shows its certificate. Access is the
// part that has a store; Allow and its neighbours are functions from values to
// an answer.
//
// # Authority
//
// Allow is the one place where authority is decided, whatever the protocol. What
// a condition on nodes covers is found out by who has the nodes: NodeScopes says
// which conditions matter, and Object.Inside tells which of them hold.
//
// Nobody gives away what they do not have (Covers): who may edit users does not
// become an administrator by it.
//
// # Secrets
//
// Passwords are kept as argon2id in PHC notation, tokens as the SHA-256 of their
// 256 random bits. Neither is ever logged, recorded or returned. A token is found
// by its digest, so that comparing takes no time that could be measured.
//
// A wrong name, a wrong password, a locked and a disabled user get the same
// answer in the same time. Failures lock a user for a time that doubles with
// each further one; attempts are limited for each name and address besides.
// Hashing runs a few at a time: each takes 32 MiB.
//
// # Audit
//
// What changes something is recorded before it is done, and its outcome after
// it; what cannot be recorded is not done. An entry that says "started" is of an
// act whose end nobody saw: the server died, or the outcome could not be written.
// Refusals are recorded, too. Those of callers who proved nothing are limited to
// a hundred a minute, so that strangers cannot fill the disk; the next entry
// says how many were left out.
//
// Each entry and each outcome is a line of a chain, with the digest of the line
// before; the CA's key signs the newest line now and then. ChainEnd says which lines
// there are to be, Checker what is wrong with those there are: both are pure. A chain
// is cut at its beginning only, and a line of it says where.
//
// # Errors
//
// Denied: no right, or not proven; Invalid, NotFound, Conflict as named; a full
// hasher or too many attempts are Unavailable with a time to come back. A log that is
// not what was recorded is a BrokenChain.
//
// # Concurrency
//
// Access may be used by many at once, and by several servers on one store.
//
// Sources: RFC 9106 (argon2), the PHC string format.
package rbac
