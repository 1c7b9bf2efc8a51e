// Package builtin makes actions of the modules that the agent itself has: each lies in a folder below. They need no Ruby where the
// system's own tools do.
//
// A module is its description in JSON (see package action) and one function for each action. An action that only reads is answered inside
// the agent, without a record on the disk. An action that changes something runs in a process of its own, which outlives the
// agent: an upgrade of the agent's own package does not break it off. Mostly that is the agent's own binary (Main); a module may name another program.
//
// # Errors
//
// What an action returns as an error is told to whoever asked. Abort is for what the action itself could not do, perhaps with data;
// Invalid faults are about its input; anything else is an internal error, and only the node's log has its text.
//
// # Concurrency
//
// Functions of actions may be called concurrently.
package builtin
