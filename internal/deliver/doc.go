// Package deliver decides which catalog a node may have now.
//
// A node is in one of two modes. In live mode its newest catalog is its own the
// moment it is there. In released mode it has only what somebody released to it:
// each release appends a generation, numbered 1..n for each node, and the newest
// generation is the node's catalog until the next one. The mode is the node's own
// setting, else that of the deepest group that has one and that the node is in, else
// the server's (see Decide).
//
// The pointer is the answer to "what may I have": mode, catalog, environment, version.
// It costs lookups and never a compilation.
//
// # States
//
//	           mode becomes released                release (gives generation n+1)
//	      ┌── (the newest catalog becomes ──┐        ┌───┐
//	      │    generation n+1)              ▼        │   ▼
//	live ─┤                              released, generation n
//	      │                                 │        │   ▲
//	      └◄──── mode becomes live ─────────┘        └───┘ pin, unpin
//
// A mode can also change without anybody who changes it: facts bring a node into a
// group. So the mode that is in force is stored with the node, and the first who asks
// about the node takes the step (see Service.Standing). Because the newest catalog
// becomes a generation with that step, nothing changes for the node when it comes into
// released mode. A node that never had a catalog comes to it without a generation, and
// has no pointer until there is a release.
//
// A generation is a row for good until retention takes it: the newest ones of each
// node stay, always the current one. What a kept generation names (its document, its
// version's files) must be kept too. A roll back is a generation with an older
// generation's catalog.
//
// What is released is also what the inventory shows. A generation is promoted there
// after it was committed; one that was not, because the server died between, is
// promoted by Run.
//
// A pinned node keeps its generation: releases to it are refused until it is unpinned.
//
// # The brake
//
// In live mode a newer catalog is compared with the one that its node has, by the number
// of resources (see Brake). What is below the floor is held: a row says so, the catalog
// stays a staged one, and the node keeps what it has.
//
//	          loses too much: NoteLoss         Let: somebody's word, kept
//	newest ─────────────────────► held ──────────────────────► newest
//	  ▲                            │ another catalog is given, the kept one is right
//	  └────────────────────────────┘ again, or the node comes into released mode
//
// What is let go is let go for good: one catalog for one node, or all of a version. A
// release is never braked: somebody reviewed it.
//
// # Hints
//
// Who is told that its pointer changed asks sooner; who is not asks on its schedule.
// Hints are lost with the process and nothing is owed. See Hinter.
//
// # Errors
//
// NotFound for a node without a pointer, and for generations that are not there;
// Conflict for a release to a node that is pinned or not in released mode, and for one
// that somebody else came before; Invalid for what cannot be.
//
// # Concurrency
//
// Service and Hinter may be used concurrently. Two that decide about one node at once
// are told apart by the store: a Step is taken only from the state that it was decided
// in.
package deliver
