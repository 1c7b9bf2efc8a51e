// Package cli is the command line: `tutti NOUN VERB`. Commands speak to a server
// through api.Client, print text for people and the API's own types for
// programs, and decide nothing.
//
// The result goes to standard output; progress, hints and errors go to standard error. The table of exit codes
// is in exit.go.
package cli
