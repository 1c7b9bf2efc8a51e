// Package schedule decides when a node applies its catalog by itself, and sees to it that this
// happens: on a schedule, at once when it is told, and again after a while when it could not be done.
//
// Decide is all of the decisions: settings, State and the time in, the next step out. An Engine
// keeps the State, and does what Decide says through its Runner, one run at a time.
//
// # States
//
//	             a slot came, or it was told
//	waiting ───────────────────────────────────► running ──┐
//	   ▲                                                    │
//	   ├── done, whatever came of it: until the next slot ──┤
//	   ├── disabled on the node: until the next slot ───────┤
//	   └── could not be done: one minute, two, four … ──────┘
//
// # The schedule
//
// Time is cut into intervals, the same for the whole fleet; a node's slot in each of them is where the
// hash of its name falls within the splay. So a fleet is spread, a restart changes nothing, and one
// can know beforehand when a node will run (Slot). A slot that passed while the node slept or no agent ran is made
// up for by one run, however many passed. A node that never ran does so at once.
//
// # Told
//
// A run that is told (Tell) begins at once, or after the one that is going on, but not sooner than Gap
// after the run before began; the gap doubles with each run in a row that could not be done. Told
// twice is told once: one run applies the newest catalog.
//
// # Failure
//
// That a run begins is kept before it does. After a crash the engine waits for the run that
// the earlier process began, if there is one. A State that cannot be kept is logged, and work goes on.
//
// # Errors
//
// Those of the Store when the State cannot be read; Invalid for settings that make no sense.
//
// # Concurrency
//
// Everything of an Engine may be called concurrently; Run is called once.
package schedule
