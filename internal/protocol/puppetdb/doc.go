// Package puppetdb stands in for a PuppetDB: it answers the questions of tools that
// read from one (/pdb/query/v4, /pdb/meta/v1) and takes the commands of servers that
// write to one (/pdb/cmd/v1), with the shapes, types and error texts of PuppetDB 7.12.
// docs/puppetdb-compatibility.md names the differences and their reasons.
//
// A path names an entity and often narrows it: nodes/web-1/facts/kernel is the
// entity facts where certname is web-1 and name is kernel. One table (paths.go)
// holds what each path means; the query that a caller adds is narrowed further.
//
// A command is read, checked and stored before it is answered: there is no queue,
// nothing fails later, and what is acknowledged is committed.
//
// # Errors
//
// As PuppetDB: 400 with a plain text for what is wrong in a query or parameter,
// 404 with {"error": ...} for one thing that is not there, 503 when the answer takes
// too long. An error after the first row breaks the connection off, so that
// nobody takes half an answer for a whole one.
//
// # Concurrency
//
// A Handler may be used by any number of goroutines. Rows are streamed; none is
// kept. Commands are bounded in number (gate.go) and bytes.
//
// # Sources
//
// PuppetDB 7.12.1: its documentation, and the answers of a running one.
package puppetdb
