// Package pql is the query language of the inventory: it parses a query text into a syntax tree, checks the
// tree, and prints it as text again.
//
// There are two notations and one tree. [Parse] reads PQL, made for people:
//
//	inventory[certname] { facts.os.family = "Debian" and resources { type = "Class" and title = "Role::Web" } }
//
// [ParseAST] reads the same as nested JSON arrays, made for programs:
//
//	["from", "inventory", ["extract", ["certname"], ["and", ...]]]
//
// [Query.String] and [Query.AST] write a tree in either notation; their output parses to the same tree. [Check]
// compares a tree with the schema (one table, schema.go): the entities, their fields with types, and whether a
// field can be selected or only tested. [Complete] lists the words that may stand at a place in a text.
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
// Every error is an [*Error], which counts as an Invalid fault: it has the place (line and column, counted in
// characters from 1), the text found there, and the text that was expected.
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
