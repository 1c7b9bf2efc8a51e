// Package puppetrun is the program that does one Puppet run: what the original's
// external module pxp-module-puppet is to its agent.
//
// It reads an order (pxp.PuppetOrder) from standard input, runs the installed `puppet agent`
// once, waits if another run holds the lock, reads the report that the run left, and prints
// pxp.PuppetResults. What Puppet itself prints goes to standard error.
//
//	check flags ─► configprint ─► run ──── ended well ───────────────► read the report
//	                               │ failed                                  ▲
//	                               ├─ disabled ─► agent_disabled             │
//	                               └─ locked ──► wait ─► run again ──────────┘
//
// # A catalog that the node keeps
//
// When the agent names one (pxp.PuppetCatalog), Puppet applies exactly that: the document is held against its digest,
// the plugins of its version are synced unless they are there, the catalog is written where Puppet keeps
// its cached one, and the report is held against what was to be applied. Nothing of this needs a server.
//
// # Settings
//
// Puppet's settings are kept in a file (pxp.PuppetConfiguration), for an hour at most, and while puppet.conf, Puppet's
// executable and what names the machine are as they were.
//
// # Reports that no server took
//
// They are kept in a directory (pxp.PuppetConfiguration), as JSON, under names that sort by time.
//
// # Process
//
// It runs as a process of its own, so that a Puppet run, and the waiting for one,
// outlive the agent that ordered it.
//
// # Security
//
// Flags come from a controller. Each element holds only letters, digits and _ : , . -, and one that
// begins with -- must be in a list. Puppet is started without a shell.
//
// # Failure
//
// Everything that goes wrong is in the results (error_type, error), and the exit code is 1. Whether
// Puppet ran at all is told by the report: its file must be newer than before.
//
// # Sources
//
// The behaviour of pxp-module-puppet 1.15. Unlike it, flags are not taken for a set: a
// value may be there twice.
package puppetrun
