// Package release hands exactly the catalogs of a preview to chosen nodes, in waves, and takes them back.
//
// Story: a user has read a preview and releases it. The nodes of the release, the wave of each node and its
// catalog are fixed then. Wave by wave each node's generation is set to its catalog, and a job runs Puppet on
// the wave's nodes. The result of each node is a state with a reason. Nothing is compiled. When a wave has
// ended, the next one begins by itself, after a time, or when a user promotes it. If more nodes fail than the
// budget allows, the release pauses. A roll back is a release of catalogs that nodes had before.
//
// A Service has four parts: the Planner makes releases, Records keep them, Control is what people do with one, and the Worker brings
// them on; for each wave it uses waves.
//
// # States of a release
//
//	waiting_approval ──► running ◄──► paused (by hand, budget, promotion, freeze, policy, trouble)
//	        │    ▲          │  │         │
//	        │    └──────────┘  │         │
//	        │                  ▼         │
//	        │    done, done_with_failures│
//	        └──────────► stopping ◄──────┘
//	                        │
//	                        ▼
//	                     aborted
//
// While a release is paused no run begins, but active runs go on and their results are recorded. Stopping ends
// the job of the wave and waits for the active runs.
//
// # States of a wave
//
//	waiting ──► releasing ──► (rehearsing ──►) running ──► ended
//	                ▲                             │
//	                └─── resumed after skipping ──┘
//
// Releasing judges each node and sets its generation; rehearsing is a job in noop mode, running the job that
// counts. Nodes that the job did not run get back their earlier catalogs. If a release paused because its
// budget was used up, and is resumed, nodes that were skipped get another round.
//
// # States of a target
//
//	waiting ──► sent ──► applying ──► ok, changed, failed, foreign, timed_out
//	   │          └─────────────────► offline, skipped
//	   └─► superseded, refused, skipped
//
// Superseded: the node has another catalog than the preview compared with, or an input of its catalog has
// changed. Refused: the node takes no releases, or there is no catalog for it. Foreign: the node's run applied
// another catalog than the released one. Target.Step is the only way from one state to the next. A final state
// stays, except that Target.Again gives a skipped target another round.
//
// # Failure
//
// Rows first, acts second. Every act may be done again: a generation that a node has is not given twice, a job
// is ordered under a key, and found again by it. So a server that is killed between any two steps goes on from
// the rows. An act of a user writes the release's row only if the row has not changed since the user saw it; so
// does the worker.
//
// # Judgement
//
// The gate is asked at creation and before each wave. A rule that denies pauses the release; a rule that needs
// approval makes it wait; a freeze pauses it until the freeze ends, and then the release goes on by itself. A
// change of rules or freezes wakes the service, which asks the gate again for all releases that wait. An
// approval is bound to the digest of the catalogs, nodes and waves. Nobody can approve a release of their own,
// unless the rule allows it.
//
// # Errors
//
// Invalid for a wrong request, with the field; NotFound; Conflict for an act that does not fit the state, with
// the acts that fit; Denied for approvals; errors of ports are passed on.
//
// # Concurrency
//
// Run of a Service blocks, and ends every goroutine that it starts; all other methods may be called
// concurrently. One process works on releases.
package release
