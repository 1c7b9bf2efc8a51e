// Package scan reads the JSON and PSON that nodes send (facts, catalogs, reports) in one pass over the text, without
// building a tree. What it reads is bounded in bytes, depth, values and length of paths; Canonical writes a value
// in the one form that equal values share.
//
// Errors are Invalid, and say what is wrong and at which byte.
package scan
