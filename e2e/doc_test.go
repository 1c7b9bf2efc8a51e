// Package e2e_test tells users' stories against the true binary: `tutti` runs
// as a process, and Debian's real `puppet agent`, Puppet Server and pypuppetdb speak
// to it. What is claimed of the product is proved here; how its parts work is proved
// beside them.
//
// Most stories share one server (house) with one set of deployed environments
// (testdata/control) and differ by certname. A node's class is chosen by the fact
// "story", and everything it writes is below the fact "scratch". A story that
// breaks its server, or needs settings of its own, starts its own.
//
// Expectations that begin with "as Puppet Server" were observed once: the same
// agent, the same environments, Debian's puppetserver 7.9.5.
//
// Agents are the expensive part (about a second of CPU each). At most two run at
// once; they are kept cheap by settings and by a stand-in for augparse, a
// program that spends most of a second on one fact that nobody here reads.
//
// Nothing waits for time to pass: everything waits for what it needs, with a deadline.
package e2e_test
