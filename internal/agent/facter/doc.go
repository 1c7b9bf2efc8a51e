// Package facter asks a node's Facter for its facts, as a Puppet run would.
//
// It runs the installed puppet, never Facter itself: only Puppet knows where plugin facts,
// external facts and facts of modules are. `puppet facts find` resolves what a run submits,
// with the settings of the agent's section, which `puppet agent --configprint` tells; they are
// asked for again every hour. `puppet facts show` resolves single facts, which is cheaper.
//
// # Failure
//
// Each program has a limit of time and of output, and is ended as a group with all that custom facts
// started. What a custom fact prints on standard error is the operator's to see: it is
// logged at debug.
//
// # Errors
//
// NotFound when puppet is not installed; Unavailable when it takes too long, fails or prints no
// facts.
//
// # Concurrency
//
// A Facter may be used concurrently; one program runs at a time.
//
// # Sources
//
// Puppet 7 and 8: lib/puppet/face/facts.rb, lib/puppet/indirector/facts/facter.rb.
package facter
