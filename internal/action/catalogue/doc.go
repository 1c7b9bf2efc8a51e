// Package catalogue knows which modules, which agent and which platform each node has, and what each module can do.
//
// An agent says when it connects what it is, and the digest of the set of its modules. Most nodes of a fleet have one of few sets, and most
// sets share their modules. So the list of a set is asked for only if its digest is not known, and the metadata of a module only if that
// digest is not known: each once, of one node that has it. What a node answers must have the digest that was asked for. Stock
// agents tell nothing and are not in here.
//
//	told ──► the set is known? ──no──► modules list ──► each module is known? ──no──► modules describe
//	              │ yes                                       │ yes
//	              └──────────────────► nothing to ask ◄───────┘
//
// Next decides what is asked. A Service holds everything in memory but the metadata, and is the only one that writes: once a second, what
// changed, in one transaction. A node that connects again and tells the same costs no write.
//
// # Several servers
//
// Servers on one Store have a Service each. Each saves what the nodes that are connected to it tell, and asks only these. A Follower
// hears from the others when they have saved something (Parts.Saved, Heard), looks by itself every few seconds, and reads what is stored when it differs:
// so each knows the modules of all nodes a second or two after one of them does.
//
// # Failure
//
// A crash loses what came in the last second. All agents connect again then, and tell it again. A question that is not answered in time, or
// wrongly, is asked of another node. The node that gave a wrong answer is not asked for a while; a question that many answer
// wrongly is asked more and more rarely.
//
// # Bounds
//
// A set has action.MaxModules modules, a module action.MaxMetadataBytes of metadata. A node may tell something else 60 times an hour. So many questions are
// open at once: Limits.Open. Beyond Limits.Sets and Limits.Bytes nothing more is asked for. What no node has any more is
// forgotten with the next write.
//
// # Errors
//
// Invalid (a message of the wrong shape), NotFound (no node has the module), Unavailable (a node tells too often).
//
// # Concurrency
//
// A Service and a Follower are safe for concurrent use. Run starts nothing that outlives it.
package catalogue
