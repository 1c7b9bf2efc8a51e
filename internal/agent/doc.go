// Package agent is the daemon of a node: it joins a server's fleet, stays connected, and has
// done what it is told.
//
// Join gets a node's certificate and writes agent.yaml. Run keeps a pcp.Link to one of the
// servers and hands its messages to an orders.Engine, which decides and remembers; programs
// run through package process, their files come through package fetch, and what became of
// them is kept by package spool. AskStatus asks an agent that runs how it stands; Doctor looks
// for what keeps one from its work.
//
// # Catalogs and runs
//
// The node's catalog is fetched when a server tells of another one, after connecting, and from time to time; it
// is held against its digest whenever it comes or is used, and stays when no server is there. Package schedule
// decides when it is applied; the runs are orders like those of the server, in the same lane, so that there is one at a time.
// Reports that no server took are delivered later.
//
// # Files
//
// In the directory (Config.Dir): agent.yaml, ca.pem, certificate.pem, key.pem, crl.pem, policy.yaml. In
// the data directory: spool, cache, catalogs, reports, runs.json, agent.sock. One agent has a data directory at a time.
//
// # Whom it believes
//
// Nothing is taken from a server whose certificate does not come from the CA in ca.pem, and that was proved
// by its fingerprint when the node joined. Revocation lists are fetched every day.
//
// # Failure
//
// SIGTERM: no order is taken any more, programs go on, and the next agent on the same data directory takes them
// over and delivers what came of them. The same is so after kill -9. Certificates that change on disk count from the next
// connection on; files that cannot be used leave things as they were.
//
// # Errors
//
// Invalid (a setting, a file), NotFound (no certificate, no agent), Conflict (the name is taken, another agent
// runs), Denied (a server that is not the one), Unavailable (it is away; then it wraps api.ErrUnreachable).
//
// # Concurrency
//
// Run starts what it needs and ends it. An Identity may be used concurrently.
package agent
