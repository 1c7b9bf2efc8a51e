// Package deliver decides which catalog a node may have now.
//
// A node is in one of two modes. In live mode a node has its newest catalog the moment it is compiled. In
// released mode it has only the catalogs that somebody released to it: each release appends a generation,
// numbered 1..n for each node, and the newest generation is the node's catalog until the next one. The mode is
// the node's own setting, else that of the node's deepest group that has a mode, else that of the server (see
// Decide).
//
// The pointer tells a node which catalog it may have: mode, catalog, environment, version. Making a pointer
// costs look-ups and never a compilation.
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
// A mode can also change although nobody sets it: changed facts can bring a node into a group. So the current
// mode is stored with the node, and the first request about the node takes the step (see Service.Standing).
// Because the newest catalog becomes a generation with that step, nothing changes for the node when it comes
// into released mode. A node that never had a catalog comes to it without a generation, and has no pointer
// until there is a release.
//
// A generation is a row that stays until retention deletes it. The newest generations of each node stay, and
// always the current one. The document and the files of the version that a kept generation names must be kept,
// too. A roll back is a generation with an older generation's catalog.
//
// The inventory shows the released catalog. A generation is promoted there after it was committed. If the
// server died in between, Run promotes the generation.
//
// A pinned node keeps its generation: releases to it are refused until it is unpinned.
//
// # The brake
//
// In live mode a newer catalog is compared with the node's current one, by the number of resources (see Brake).
// A catalog below the limit is held: a row says so, the catalog stays staged, and the node keeps its current
// catalog.
//
//	          loses too much: NoteLoss         Let: somebody's word, kept
//	newest ─────────────────────► held ──────────────────────► newest
//	  ▲                            │ another catalog is given, the kept one is right
//	  └────────────────────────────┘ again, or the node comes into released mode
//
// A person can let one catalog go for one node, or all catalogs of a version; that cannot be undone. A catalog
// of a release is never held, because somebody reviewed it.
//
// # Hints
//
// An agent that gets a hint that its pointer changed asks at once; without a hint it asks on its schedule.
// Hints are lost when the process ends, which does no harm. See Hinter.
//
// # Errors
//
// NotFound for a node without a pointer, and for generations that are not there; Conflict for a release to a
// node that is pinned or not in released mode, and for a release that another one overtook; Invalid for
// malformed requests.
//
// # Concurrency
//
// Service and Hinter may be used concurrently. If two callers decide about one node at the same time, the store
// lets only one succeed: a Step is taken only from the state in which it was decided.
package deliver
