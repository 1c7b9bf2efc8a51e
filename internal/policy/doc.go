// Package policy judges changes before they are released: what is forbidden, what needs
// somebody's approval, what deserves a warning, and when nothing may begin at all.
//
// Story: people set rules. Each has an expression over a change of a preview and the
// nodes that would get it, and an effect. When a release is about to be made, and before each of its waves, Judge
// looks at every change of the preview that touches the release's nodes, also at those that noise rules hide; each rule
// that finds one says so once, with the changes and the number of their nodes. Freezes are times in which nothing
// begins; the verdict says until when.
//
// Judge stores nothing and asks nobody: what it needs is handed in. Approvals belong to releases.
//
// # Expressions
//
// The language is that of github.com/expr-lang/expr, cut down: see Compile for what is left. An expression sees the values of
// Subject and Change and nothing else: no clock, no environment, no function but the few that are named. It is
// checked when it is set: a name that is not known or a result that is not true or false is refused with its place.
//
// # Bounds
//
// An expression has at most MaxWhen bytes and maxNodes parts; it cannot make lists or texts grow, nor nest
// loops, so that one evaluation ends within its length times the length of what it looks at. All together ends with the
// context.
//
// # When a rule cannot be judged
//
// It counts as if it had found the change: what should forbid, forbids.
//
// # Times
//
// Every freeze and every rule names a zone of the IANA database. A weekly freeze follows the clock on the wall: what
// begins at an hour that the clock skips begins when it has skipped; of an hour that comes twice the first one
// begins a freeze and the second one ends it.
//
// # Errors
//
// Invalid for a rule or freeze that is set wrongly, with the field; NotFound; Unavailable when judging takes too long;
// what ports return is passed on.
//
// # Concurrency
//
// All of it may be used concurrently.
//
// Sources: expr 1.17 language definition; IANA time zone database, as Go has it.
package policy
