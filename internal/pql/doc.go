// Package pql is the language in which the inventory is asked: query text to
// syntax tree to checked query, and back to text.
//
// There are two notations and one tree. [Parse] reads PQL, made for people:
//
//	inventory[certname] { facts.os.family = "Debian" and resources { type = "Class" and title = "Role::Web" } }
//
// [ParseAST] reads the same as nested JSON arrays, made for programs:
//
//	["from", "inventory", ["extract", ["certname"], ["and", ...]]]
//
// [Query.String] and [Query.AST] write a tree in either notation; what they write
// reads back as the same tree. [Check] compares a tree with the schema (one table,
// schema.go): which entities there are, which fields they have, of which type, and
// whether a field can be asked for or only tested. [Complete] says what may stand
// at a place in a text.
//
// The forms ["fact", name] and ["parameter", name], which only the AST has, become
// a subquery on facts and the field parameters.name; `!=` and `!~` become a
// negation.
//
// # Bounds
//
// A text has at most [MaxBytes] bytes and nests at most [MaxDepth] deep.
//
// # Errors
//
// Every error is an [*Error], which counts as an Invalid fault: where (line and
// column, counted in characters from 1), what was found, what was expected.
//
// # Concurrency
//
// Everything is a value or a pure function. A tree must not be changed while
// others read it.
//
// # Sources
//
// PuppetDB 7.12.1: its documentation of PQL and of the AST query language, and
// the answers of a running one.
package pql
