// Package puppet is the built-in module puppet: whether Puppet's agent of this node is enabled and at work, how its last run ended, and a run now.
// Its action resource is that of package resource.
//
// Its actions, with what they take and give, are those of MCollective's plugin of the same name. Status and summary come from the files that
// Puppet itself writes; Puppet is only started to tell where these are, when its kept settings do not hold any more.
//
// # Locks
//
// enable and disable do what `puppet agent --enable` and `--disable` do: the same file with the same JSON. The file appears as a whole, and
// never replaces another one.
//
// # runonce
//
// A run that is asked for here is prepared exactly as one of pxp-module-puppet and waits in the same lane, so that the agent knows of all its
// runs and does one at a time. Unlike the original, which only starts a run, the action ends when the run does, and a run that fails is an action
// that fails. Puppet asks the server of its own settings: another one is refused, and so are splay settings together with force. Without either,
// the settings of Puppet count.
//
// # Errors
//
// What could not be done is told with builtin.Abort; a setting or file that cannot be read is Unavailable.
//
// # Sources
//
// The puppet plugin of Choria 2.5, and Puppet 7 and 8 for the files: agent_disabled.lock, agent_catalog_run.lock, agent.pid,
// last_run_summary.yaml, last_run_report.yaml, resources.txt.
package puppet
