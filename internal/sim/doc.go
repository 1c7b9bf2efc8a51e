// Package sim simulates a fleet of nodes in one process, for tests, benchmarks and the demo. It can cause the
// faults of a real fleet on purpose.
//
// Each node has a certificate of its own and a TLS connection to a real server (pcp.Link), and decides what to
// do with requests as an agent does (orders.Engine with all its modules). Only the machine below is simulated:
// the disk and the programs are those of package machine, in memory. A command is answered by a small made-up
// shell, a task by its parameters, a Puppet run by plausible results, some actions of the modules service and rpcutil from memory; files are never fetched. A
// node that has nothing to do costs two goroutines and its connection, so that ten thousand fit into one process.
//
// # Catalogs
//
// With Config.Catalogs a node asks for its catalog when it is connected and when it gets a hint of another one.
// It compares the document with its digest, and "applies" it when the server says so (or always: ApplyAtOnce).
// The Recorder records the application, and the node sends a report again and again until the server takes it,
// also with the next agent. An ordered Puppet run applies the catalog, too. With Config.Events applying takes a
// while, even if the agent ends. The events of the catalog's resources are in the node's log, and an agent's
// own code streams them (events.Sender). A node that starts again (Reboot) ends the run without a report, and
// the next agent begins anew.
//
// # Faults
//
// Messages are dropped, repeated, delayed and followed by a broken connection, as Faults says. Schedule lists
// the other faults: connections break, of one node or of all at once (Storm); agents are killed and start again
// on the same spool, while their programs go on (Crash) or are gone, too (Reboot); servers and real agents are
// killed, by the program that plays the schedule. All faults come from a seed: with the same seed, the n-th
// message of a node and the n-th step of a schedule get the same fault. The order of concurrent events depends
// on the machine, so it may take more than one try to repeat a failure.
//
// Messages are lost above TLS, which would notice a missing byte. In a real fleet they are lost when a process
// dies that had them in its memory.
//
// # Invariants
//
// A Recorder sees every execution, whatever was killed. Totals names the orders that were executed twice. Judge
// compares the server's result of a run that has ended with the node's own.
//
// # Keys
//
// Certificates from an Enroller share one key: making ten thousand keys would take CPU time away from the
// measurement. The server sees no difference.
//
// # Concurrency
//
// A Fleet's methods may be called concurrently once Enrol has returned.
//
// # Errors
//
// Errors concern enrolment. A running fleet logs errors, and tries again as agents do.
package sim
