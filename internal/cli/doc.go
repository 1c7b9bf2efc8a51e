// Package cli is the command line: `tutti NOUN VERB`. Commands speak to a server
// through api.Client, print text for people and the API's own types for
// programs, and decide nothing.
//
// Standard output is the result; progress, hints and errors go to standard
// error. Exit codes are the table in exit.go.
package cli
