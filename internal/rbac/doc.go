// Package rbac identifies users, decides which operations they may do on which objects, and records their acts
// in the audit log.
//
// A user has roles, a role is a list of grants, a grant is a permission and the objects that it covers. A user
// is a person, who logs in with a password and then shows a token, or a node, which shows its certificate.
// Access is the part that has a store; Allow and its neighbours are functions from values to an answer.
//
// # Authority
//
// Allow is the one place where authority is decided, whatever the protocol. The caller, which has the nodes,
// finds out what a condition on nodes covers: NodeScopes says which conditions matter, and Object.Inside says
// which of them hold.
//
// Users cannot give others more rights than they have themselves (Covers): the right to edit users does not
// make a user an administrator.
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
// Every act is recorded before it is done, and its outcome after it. An act that cannot be recorded is not
// done. An entry that says "started" belongs to an act whose end was not recorded: the server died, or the
// outcome could not be written. Refusals are recorded, too. Refusals of callers without a proved identity are
// limited to a hundred a minute, so that strangers cannot fill the disk; the next entry says how many were left
// out.
//
// Each entry and each outcome is a line of a chain, with the digest of the line before; the CA's key signs the
// newest line now and then. ChainEnd says which lines must exist, Checker finds faults in the existing lines:
// both are pure. A chain is cut only at its beginning, and a line of the chain records where.
//
// # Errors
//
// Denied: no right, or not proven; Invalid, NotFound, Conflict as named; a full hasher or too many attempts are
// Unavailable with a time to come back. A log that differs from the recorded one is a BrokenChain.
//
// # Concurrency
//
// Access may be used by many at once, and by several servers on one store.
//
// Sources: RFC 9106 (argon2), the PHC string format.
package rbac
