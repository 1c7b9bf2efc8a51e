// Package sim is a fleet of simulated nodes in one process, for tests, benchmarks and
// the demo, with what goes wrong in a real fleet on purpose.
//
// Each node has a certificate of its own and a TLS connection to a real server
// (pcp.Link), and decides what to do with requests as an agent does
// (orders.Engine with all its modules). What is made up is the machine below: the
// disk and the programs are package machine's, in memory. A command is answered by a
// small made-up shell, a task by its parameters, a Puppet run by plausible results; files are never fetched.
// A node that has nothing to do costs two goroutines and its connection, so that
// ten thousand fit into one process.
//
// # Catalogs
//
// With Config.Catalogs a node asks for its catalog when it is connected and when it is told of another one, holds the document
// against its digest, and "applies" it when the server says so (or always: ApplyAtOnce): the Recorder knows, and a report is sent, again and
// again until the server takes it, also by the next agent. An ordered Puppet run applies it, too.
// With Config.Events applying takes a while, whatever becomes of the agent;
// what happens to the catalog's resources is in the node's log and streamed by an agent's own code (events.Sender). A node that starts again
// (Reboot) ends the run without a word, and the next agent begins anew.
//
// # Faults
//
// Messages are dropped, repeated, delayed and followed by a broken connection, as Faults
// says. Schedule lists what else happens: connections break, of one node or of all at
// once (Storm); agents are killed and start again on the same spool, while their programs go on
// (Crash) or are gone, too (Reboot); servers and real agents are killed, which is up to whoever
// plays the schedule. Everything is drawn from a seed: the n-th message of a node and
// the n-th step of a schedule meet the same fate whenever the seed is the same. What happens at the
// same time is up to the machine, so a failure may need more than one try to come again.
//
// Messages are lost above TLS, which would notice a missing byte. In real life they are lost
// when a process dies that had them in its memory.
//
// # Invariants
//
// A Recorder sees every execution, whatever was killed. Totals names what was executed
// twice; Judge compares what a server says of a run that is over with what its node did.
//
// # Keys
//
// Certificates from an Enroller share one key: making ten thousand would take the machine
// from what is measured. The server sees no difference.
//
// # Concurrency
//
// A Fleet's methods may be called concurrently once Enrol has returned.
//
// # Errors
//
// They concern enrolment; a running fleet logs, and tries again as agents do.
package sim
