// Package factqueue takes facts that nodes submit apart from runs.
//
//	node ─► Put, Patch ──── nothing waits: applied at once ──► Inventory.SaveFacts = ─► Answer
//	              │                                                  ▲
//	              └─ a burst: Store.EnqueueFacts = ─► Answer{Queued}      │      └─ = news ─► Wanter
//	                              └──────────────── worker ──────────┘
//
// Accepted means stored: "=" marks a committed row. In a burst a set is only queued, packed, in one row;
// workers apply it later. A node has at most one queued set: a newer set replaces the older one, because only
// the newest state of a node matters. So sets of one node are applied in their order, and the queue has no more
// rows than there are nodes. If the queue holds more than Config.QueueBytes, a set is refused, with the time to
// come back.
//
// A difference is put together with the newest set that was accepted, queued or applied,
// before it is stored: a stored set is always whole. A difference against anything else
// is refused (Conflict), and the node sends all of its facts.
//
// # Order
//
// Nodes number their submissions. A set that arrives late or twice changes nothing: a set with the stored
// number gets the same answer again, a set with a lower number is refused (Conflict). Facts that come with a
// run have no number and are the newest when they arrive; a set that was queued before them is not applied any
// more.
//
// # Changes
//
// The inventory stores the facts together with the differences from before, whatever their source. Package
// compile decides from these differences whether a catalog is wanted.
//
// # Failure
//
// Killed between accepting and applying: the row is there after the start. Killed between
// applying and removing the row: the set is applied again, which changes nothing. A store
// that fails makes the worker pause, from a second up to a minute.
//
// # Concurrency
//
// Put, Patch and State may be called concurrently. Run blocks, and applies Config.Workers
// sets at a time.
//
// # Errors
//
// Conflict as above; Invalid for a difference that is none of its base; Unavailable
// with RetryAfter when the queue is full, or the store is.
package factqueue
