// Package pki is the certificate authority of the fleet: certificate requests, signing, renewal, revocation.
//
// An Authority holds the fleet's signing key in its directory and everything
// else in a Store. Its parts are handed to those who need only one: Requests (what nodes ask for), Revocations (who is refused),
// ServerCertificates (the listener's) and AuditKey. Below them records make each change, and an issuer signs. A node submits a request, somebody or a rule
// signs it, the node fetches its certificate; later that is renewed, revoked or cleaned.
//
//	            Submit              Sign               Revoke
//	(unknown) ─────────► requested ──────► signed ──────────────► revoked
//	    ▲                    │               │  ▲ Renew              │
//	    └────── Forget ──────┴──── Forget ───┘  (new serial)         │
//	    └──────────────── Forget (stays on the revocation list) ─────┘
//
// Clean is Revoke and Forget in one step. A name whose certificate was revoked cannot ask again before it is
// forgotten: otherwise a rule that signs by name would give a revoked node a new certificate.
//
// # Files
//
// journal-ID.jsonl (0600) is the CA's own record, see below. ca.pem (0600) holds the identity, the private key
// and the certificate bundle in one file, signing certificate first, so that the two can never disagree after a
// crash. server.pem (0600) is the listener's key and certificate, server-made.txt the numbers of all
// that it had. ca_crt.pem is a copy of the bundle for
// people. chain_crl.pem holds revocation lists of the CAs above ours, and is missing when there are none. Our
// own list is made from the store's rows.
//
// # Never forgetting
//
// Every change (issued, revoked, forgotten) is a line of the journal, synced to the disk, before it is written
// to the store; the answer goes out after both. Each line carries a digest over all before it, signed by the
// CA's key; the store carries the last one's number and digest. When the server starts, both must agree:
//
//	journal = store                        go on
//	journal one ahead, and unsettled       a kill between the two: apply the line
//	store empty, another CA's, older,      refuse, and say what to do: a backup, or
//	newer, on another way; journal         Adopt, after which both have what either
//	missing or damaged                     had, and the revoked of both
//
// # Several authorities
//
// Authorities in several processes may share one CA and one Store (Config.Shared), each with a directory of its own.
// The first one leaves the file with the key in Shared, and the journal's lines in the store; further ones take both.
// Who decides holds the CA in the store, and first copies the lines of the others to its own journal, checked by chain and
// signature. A change names the anchor before it, and the store takes it only there, whoever holds what. A line here of which
// nobody was told, and which the store went past, is taken back:
//
//	journal = store                        decide; line; store; answer
//	store ahead, its lines follow          copy them: revoked is refused, names of servers are reserved
//	journal one ahead, store as before     offer the change again
//	journal one ahead, store went on       take the line back, copy
//	anything else                          refuse, as above
//
// An authority that is not asked looks every WatchEvery whether the store has moved. One that is alone again copies first, at its
// start, what the others did last.
//
// # Numbers and names
//
// Serial numbers are random: a lost or older database cannot give one twice. No
// node gets a name that is, or ever was, in a certificate of the server's, nor
// localhost, nor the CA's: not from a person, a token, a policy, or by renewal. The
// server's certificates are rows of the store beside the nodes'.
//
// # Joining without a person
//
// AutosignPolicy says which requests are signed at once: all, those of listed names and globs, or those that a
// function approves. A join token in the request's challenge password signs exactly one node, whatever the
// policy. A request is refused as a whole, not only left waiting, when it asks for alternative names or
// authorization extensions that the settings do not allow.
//
// # Strangers
//
// Anybody may send requests. The number of requests that wait for a person is limited, for each address and in
// all: the oldest request of the address with the most requests is dropped. Tokens are checked before waiting
// requests are counted, then the policy. A few requests of an address are considered at the same time, and
// waiting requests never hold up signing.
//
// # Time
//
// Certificates and lists are valid from 24 hours before they were made, so that a
// node whose clock is behind can join. Times are UTC to the second.
//
// # Errors
//
// Invalid: a request or file that is broken. Denied: a request that asks for something not allowed, a bad
// token, a peer whose certificate is not of this CA or was revoked. Conflict: the name is taken, or there is
// nothing to sign or revoke in that state. NotFound: unknown name. Unavailable: the directory cannot be
// written, or the CA's certificate is not yet or no longer valid.
//
// # Concurrency
//
// An Authority is safe for concurrent use. Decisions that must not overlap (submit, sign, renew, new revocation
// list) go one at a time within a process; across processes that share a CA, too, and otherwise the store keeps names, numbers
// and tokens unique. Run picks up revocations of other processes.
//
// # Sources
//
// RFC 5280, RFC 2986; the certificate layout, OIDs and file formats of
// Puppet 7 and 8 as their agents and the classic CA directory show them.
package pki
