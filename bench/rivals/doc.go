// Package rivals starts the servers that benchmarks and tests compare, each private to
// the run: its files in a directory of its own, its port chosen by the kernel on
// loopback, its certificates from a CA made for the run. Nothing of the
// host's own configuration is read or changed, nothing is installed.
//
// Each peer is a [Target]. The caller starts it with a context that bounds its
// start, reads its usage as often as it likes, and must Stop it; Stop ends the
// whole process group and waits for it, so nothing outlives its caller. A
// cancelled benchmark (Ctrl-C) still runs its deferred Stops.
//
// # Errors
//
// A peer that is not installed is a [MissingError] that names the command
// which installs it. A peer that does not come up in time is an error that ends
// with the last lines of its log.
//
// # Concurrency
//
// A Target is started and stopped by one goroutine; URL, Client and Usage may
// be called by many in between.
//
// # Sources
//
// Puppet Server 7.9.5, PuppetDB 7.12.1, PostgreSQL 15 and nginx 1.22 as Debian
// 12 packages them; their start lines are those of the packages' own units.
package rivals
