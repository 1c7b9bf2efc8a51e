// Package classify decides the classification of a node: its environment, its classes with their parameters,
// its top-scope variables, and its configuration data.
//
// Groups form a tree under one root, All Nodes. A group has a rule over a node's facts, trusted data and name,
// and may pin nodes. A node is in a group when the group's rule matches or the node is pinned, and the same
// holds for every group above it. A group without rule and pins matches no node by itself and restricts
// nothing; the groups below it inherit its values.
//
// If a group that matches has a matching group below it, the lower group inherits its values. Matching groups
// without a matching group below are leaves. A leaf inherits from the groups above it; the nearer group wins.
// Leaves are equals: if two leaves give different values for the same thing, that is a conflict, never a silent
// choice. The environment has one exception: a leaf whose environment comes from an environment group wins over
// the others.
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
// A value is text. = and ~ (unanchored, RE2 syntax) look at the text of strings, numbers and booleans; <, <=, >
// and >= compare numbers, and are false for other values. A value that is missing, null or a structure matches
// nothing. A rule is checked as a whole when it is written. A stored rule that can no longer be read takes its
// group and the groups below it out of the classification, with a warning; it never stops a compilation.
//
// # Errors
//
// Invalid for a malformed rule or group; NotFound for a group that does not exist; Conflict for a stale
// revision, a name that is taken, and the deletion of a group with children.
//
// # Concurrency
//
// Everything here is a value: rules, groups and trees do not change once they are made, and may be shared.
//
// # Sources
//
// The groups, the rule grammar and the way of inheritance are those of Puppet
// Enterprise's node classifier, API v1. Different here: names are unique in the
// whole tree, a group need not name an environment, regular expressions have no
// look-around and no back references.
package classify
