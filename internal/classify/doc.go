// Package classify decides what a node gets: which environment, which classes
// with which parameters, which top-scope variables, which configuration data.
//
// Groups form a tree under one root, All Nodes. A group has a rule over a node's
// facts, trusted data and name, and may pin nodes. A node is in a group when the
// group's rule matches or the node is pinned, and the same holds for every group
// above it. A group without rule and pins matches no node by itself and
// restricts nothing: the groups below it inherit its values.
//
// A group that matches and has a matching group below it gives through that one.
// What remains are leaves. A leaf inherits from the groups above it, the nearer
// one wins; leaves are equals: when two give different values for the same thing,
// that is a conflict, never a silent choice. The environment has one exception:
// a leaf whose environment was set by an environment group outvotes the others.
//
// # Rules
//
// A rule is one tree with two spellings. As JSON, the classifier's own grammar:
//
//	["and", ["=", ["fact", "os", "family"], "Debian"], ["not", ["~", "name", "^db"]]]
//
// and for people:
//
//	facts.os.family = "Debian" and not name ~ "^db"
//
// A value is text. = and ~ (unanchored, RE2 syntax) look at the text of strings,
// numbers and booleans; <, <=, > and >= compare numbers, and are false for what is
// none. Whatever is missing, null or a structure matches nothing. A rule is checked
// whole when it is written; one that was stored and cannot be read any more takes
// its group and those below it out of the classification, and says so, but never
// stops a compilation.
//
// # Errors
//
// Invalid for a rule or group that cannot be; NotFound for a group that is not
// there; Conflict for a stale revision, a name that is taken, and a group with
// children that is to be deleted.
//
// # Concurrency
//
// Everything here is values: rules, groups and trees do not change once made, and
// may be shared.
//
// # Sources
//
// The groups, the rule grammar and the way of inheritance are those of Puppet
// Enterprise's node classifier, API v1. Different here: names are unique in the
// whole tree, a group need not name an environment, regular expressions have no
// look-around and no back references.
package classify
