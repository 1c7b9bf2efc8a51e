// Package agent is the daemon of a node: it joins a server's fleet, stays connected, and carries out orders.
//
// Join gets a node's certificate and writes agent.yaml. Run keeps a pcp.Link to one of the servers and hands
// its messages to an orders.Engine, which decides and remembers. Package process runs programs, package fetch
// gets their files, and package spool keeps their results. AskStatus asks a running agent for its status.
// Doctor looks for faults that keep an agent from its work.
//
// # Catalogs and runs
//
// The agent fetches the node's catalog when a server tells of another one, after connecting, and from time to
// time. It compares the catalog with its digest after each fetch and before each use, and keeps it while no
// server can be reached. Package schedule decides when the catalog is applied. These runs are orders like those
// of the server, in the same lane, so only one run is active at a time. The agent delivers reports later that
// no server took.
//
// # Files
//
// In the directory (Config.Dir): agent.yaml, ca.pem, certificate.pem, key.pem, crl.pem, policy.yaml. In
// the data directory: spool, cache, catalogs, reports, ruby, runs.json, agent.sock. One agent has a data directory at a time.
//
// # Whom it believes
//
// The agent accepts nothing from a server whose certificate does not come from the CA in ca.pem. The
// fingerprint proved this CA when the node joined. Revocation lists are fetched every day.
//
// # Failure
//
// After SIGTERM the agent takes no more orders. Programs go on, and the next agent on the same data directory
// takes them over and delivers their results. The same is true after kill -9. Certificates that change on disk
// are used from the next connection on. If the new files cannot be used, the agent keeps the old certificates.
//
// # Errors
//
// Invalid (a setting, a file), NotFound (no certificate, no agent), Conflict (the name is taken, another agent
// runs), Denied (the server is not the right one), Unavailable (the server is away; the error then wraps
// api.ErrUnreachable).
//
// # Concurrency
//
// Run starts its goroutines and ends them. An Identity may be used concurrently.
package agent
