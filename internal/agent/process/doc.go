// Package process runs programs that outlive the agent, and ends them with all that
// they started.
//
// A Runner starts no program itself. It starts the agent's own binary again, as a
// watcher (Watch), which gets the order on its standard input, runs the program, and leaves
// at the program's place what became of it:
//
//	agent                              watcher, in a session of its own        program, in a group of its own
//	start ───────────────────────────► lock "alive", write "pid"
//	       ◄──────────────────── ready
//	order (all of it) ───────────────► read it to its end ───────────────────► started
//	may be killed at any time          copy, and bound, its output ◄────────── stdout, stderr
//	                                   write "ended", "exitcode"   ◄────────── ends
//
// So an order that was sent whole has a lock that is held, until there is an exit code; and
// one that was not is never begun. Whoever holds the lock is alive: a number in a file
// can be another process by now, a lock cannot.
//
// # Ending a program
//
// A stopped program, or one that ran out of time, is asked to end (SIGTERM to its
// group); after a grace the group is killed. Windows knows no asking: there the job
// object is terminated at once. What a program left behind on purpose (a daemon in the
// background) stays when the program ends by itself.
//
// # Bounds
//
// Standard output and standard error together have at most MaxOutputBytes; the rest is read
// and thrown away, and a line at the end of standard error says so.
//
// # Secrets
//
// The order (arguments, environment, input) goes through a pipe: it is neither on a
// disk nor in the watcher's arguments. A program's own arguments are its business.
//
// # Errors
//
// Unavailable when a watcher cannot be started, or cannot write at the place. A program that
// cannot be run is no error but exit code 127, as in a shell.
//
// # Concurrency
//
// A Runner may be used concurrently.
package process
