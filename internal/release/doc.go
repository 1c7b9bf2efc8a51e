// Package release hands exactly the catalogs of a preview to chosen nodes, in waves, and takes them back.
//
// Story: somebody has read a preview and releases it. The nodes of the release and the wave of each are fixed
// then, with the catalog that each is to have. Wave by wave each node's generation is set to its catalog and a
// job runs Puppet on the wave's nodes; what becomes of each is a state with a reason. Nothing is compiled. When
// a wave has ended, the next one begins by itself, after a time, or when somebody says so. More failures than
// the budget allows pause the release. A roll back is a release of catalogs that nodes had before.
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
// While it is paused nothing begins, but what runs goes on and is taken in. Stopping ends the job of the wave and
// waits for what runs.
//
// # States of a wave
//
//	waiting ──► releasing ──► (rehearsing ──►) running ──► ended
//	                ▲                             │
//	                └─── resumed after skipping ──┘
//
// Releasing judges each node and sets its generation; rehearsing is a job in noop mode, running the job that counts.
// What the
// job did not run gets back what it had. A release that was paused because its budget was used up, and is resumed, gives nodes
// that were skipped another round.
//
// # States of a target
//
//	waiting ──► sent ──► applying ──► ok, changed, failed, foreign, timed_out
//	   │          └─────────────────► offline, skipped
//	   └─► superseded, refused, skipped
//
// Superseded: the node has another catalog than the preview compared with, or what its catalog was compiled with
// is not so any more. Refused: it takes no releases, or there is no catalog for it. Foreign: its run applied another
// catalog than was released. Target.Step is the only way from one state to the next; a final one stays, but that
// Target.Again gives one that was skipped another round.
//
// # Failure
//
// Rows first, acts second. Every act may be done again: a generation that a node has is not given twice, a job
// is ordered under a key, and found again by it. So a server that is killed between any two steps goes on with
// what the rows say. People's acts write the release's row only if it is as they saw it; so does the worker.
//
// # Judgement
//
// The gate is asked at creation and before each wave. A rule that denies pauses the release; one that needs
// approval has it wait; a freeze pauses it until it is over, and then it goes on by itself. Who changes rules or
// freezes wakes the service, which asks again for all that wait. An approval is bound
// to the digest of what is released to whom in which wave, and nobody approves a release of their own, unless the
// rule says so.
//
// # Errors
//
// Invalid for what is asked wrongly, with the field; NotFound; Conflict for an act that does not fit the state,
// with what would; Denied for approvals; what ports return is passed on.
//
// # Concurrency
//
// Run of a Service blocks and owns what it starts; all else may be called concurrently. One process works on releases.
package release
