// Package pdbdiff_test asks Debian's PuppetDB and Tutti the same questions and
// compares the answers.
//
// Both are real processes, filled with the same made-up fleet (fleet_test.go)
// through the command API. The questions stand in testdata/*.pqltest, in a form
// that questions_test.go tells. An answer is a status, a content type, a number
// of records in all and rows, or a text; all of it must be the same, but for the
// fields of one table (loose_test.go), whose values no input decides.
//
// A question whose answers differ on purpose names the row of
// docs/puppetdb-compatibility.md that says why, and what each of the two answers.
// It fails as soon as the answers no longer differ in that way.
package pdbdiff_test
