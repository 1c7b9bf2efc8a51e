// Package policy judges changes before they are released: it forbids them, requires an approval, or warns, and
// it knows the times in which no release may begin.
//
// Story: people set rules. Each has an expression over a change of a preview and the nodes that would get it,
// and an effect. When a release is about to be made, and before each of its waves, Judge evaluates every change
// of the preview on the release's nodes, also changes that noise rules hide. Each rule that matches is reported
// once, with the matching changes and the number of their nodes. Freezes are times in which no release and no
// wave begins; the verdict has their end.
//
// Judge stores nothing and calls nothing: all its input is passed in. Approvals belong to releases.
//
// # Expressions
//
// The language is that of github.com/expr-lang/expr, cut down: see Compile for what is left. An expression sees
// the values of Subject and Change and nothing else: no clock, no environment, no function but the few that are
// named. It is checked when it is set: an unknown name, or a result that is not true or false, is refused with
// its place.
//
// # Bounds
//
// An expression has at most MaxWhen bytes and maxNodes parts; it cannot make lists or texts grow, nor nest
// loops, so that one evaluation takes at most its length times the length of its input. The whole judgement
// ends with the context.
//
// # When a rule cannot be judged
//
// A rule that cannot be judged counts as if it had matched the change: a rule that forbids then forbids.
//
// # Times
//
// Every freeze and every rule names a zone of the IANA database. A weekly freeze follows the local time of its
// zone: if the clock skips the hour in which a freeze begins, the freeze begins after the skip. If an hour
// comes twice, a freeze begins in the first one and ends in the second one.
//
// # Errors
//
// Invalid for a rule or freeze that is set wrongly, with the field; NotFound; Unavailable when judging takes
// too long; errors of ports are passed on.
//
// # Concurrency
//
// All of it may be used concurrently.
//
// Sources: expr 1.17 language definition; IANA time zone database, as Go has it.
package policy
