// Package filter judges nodes by conditions in the notations of MCollective and Choria.
//
// Story: somebody gives a [Filter], as on the command line of mco or choria: facts, classes, modules, names, words,
// and one expression. [Parse] reads it once and gives a [Condition], which says what must be known of each node
// ([Condition.Needs]). Whoever has the inventory fills a [Node], and [Condition.Judge] answers Yes, No or Unknown,
// part by part, with the reason of each. A part is Unknown only as long as it reads data that has to be asked of the
// node itself; whoever asks puts the answers into Node.Data and judges once more. A Yes or No that was given without
// data stays the same with any data.
//
// All of it is a pure function: no input or output, no clock.
//
// # The fields of a filter
//
//	facts    NAME OP VALUE, all must hold: = == != < <= > >= =~ !~, and => =< for >= <=
//	classes  NAME or /RE/ of Puppet classes in the node's last catalog, all must hold
//	modules  NAME or /RE/ of the modules with actions that the node has (agents, in the words of MCollective), all must hold
//	names    NAME or /RE/ of the node, one must hold
//	words    a word with an operator is a fact, every other one a class; a text may have several words; all must hold
//	select   an expression
//
// A filter with nothing in it holds for every node.
//
// A fact's name may be a path, os.release.major or mounts.0 or mounts[0]. [At] is what a path means. VALUE is
// compared like this:
//
//   - = == != with a number among the facts, and < <= > >= with a number or a text of digits: as numbers, if VALUE is one too;
//   - else as text, character by character. So a text 22.10 is not 22.1, but it is less than 22.9;
//   - =/RE/, =~ and !=/RE/, !~: the regular expression (RE2) is found, or not, somewhere in the text;
//   - a list holds if one of its elements does, a structure if one of its keys does, as in MCollective;
//   - a fact that is not there, or null, never holds, whatever the operator.
//
// Regular expressions tell capitals from small letters; (?i) at their start lets them not. Classes are compared in
// small letters.
//
// # Expressions
//
// The language is that of github.com/expr-lang/expr, cut down like that of policies:
//
//	fact("os.family") == "Debian" and class("role::web") and not module("disk") and file("/etc/hosts").size > 1000
//
// There are fact(path), class(name or /re/), module(name or /re/), with(word), include(list, item),
// semver(version, constraint), and the variables name, classes, agents and facts; facts is read with literal members only,
// facts.os.family. What is asked of nodes is in [Sources]: file, package, service, puppet, resource and process,
// each read by its fields. Arguments of all of these are literals, but those of include and the version of semver.
//
// `not` and `!` bind less tightly than a comparison: not fact("x") == 1 is not (fact("x") == 1).
//
// A condition is taken apart at and, or and not. What is left, a leaf, is computed at once, with these results:
//
//   - A fact or field that is not there is nil, as in Choria. With nil, ==, in, matches, contains, startsWith and
//     endsWith are false, and != is true. So not fact("x") == 1 holds for a node that has no fact x, and so does
//     fact("x") != 1; fact("x") == nil asks for it.
//   - A leaf that cannot be computed, fact("x") > 1 without an x, or with an x that is a text, does not hold, and its
//     negation does not hold either: nobody acts on a node by mistake. Choria gives up the whole expression then; here
//     what stands beside an `or` still counts.
//   - with("x=1") is what x=1 is among facts: without an x it does not hold, and not with("x=1") holds.
//   - A leaf whose data is not there yet is Unknown. One whose node has answered with a problem cannot be computed.
//
// [FromMCollective] translates the older language of mco -S into this one.
//
// # Units
//
// Sizes are bytes; times are seconds since 1970 (UTC); ages and durations are seconds. [Field] says which.
//
// # Values
//
// Facts and fields of answers are what encoding/json gives for any: nil, bool, float64, string, []any and map[string]any;
// json.Number and Go's whole numbers are taken too. A field of an answer that has not the type that Sources gives counts
// as a problem.
//
// # Bounds
//
// A text has at most [MaxBytes] bytes, a filter at most [MaxConditions] texts and [MaxQueries] questions to nodes, an
// expression 300 parts. Expressions cannot make lists nor nest loops: judging takes at most the length of the expression
// times the length of what it reads. Regular expressions take time in proportion to what they read.
//
// # Errors
//
// Invalid, from Parse and FromMCollective: the field, the place in its text, counted in characters from 1, what is
// expected, and names that were probably meant. Judge has no errors.
//
// # Concurrency
//
// A Condition may be used by many goroutines at once. Judge keeps and changes nothing of the Node.
//
// Sources: MCollective 2.12 (matcher, discovery), Choria 0.29 (filters), expr 1.17.
package filter
