// Package truth makes control repositories, nodes and changes from a seed, compiles
// them by plain Puppet in processes of its own, and tells how two catalogs differ:
// what tests need to check that a catalog is what plain Puppet gives. Only tests
// import it.
//
// # Constructs
//
// The files of constructs/ are the vocabulary. A line "=== name" begins a construct,
// a line "-- section --" one of its sections: a file of the repository, or one of
//
//	body     statements of the node; see frame.go for where they may stand
//	top      definitions beside the node, in a site manifest
//	values   expressions that other constructs may use from then on
//	edits    changes: path ## text ## other text; "site" stands for the site manifest
//	group    what a classification group says: class, params, variable, data
//	hierarchy  levels of hiera.yaml
//
// A file with "+" before its name is added to the file of that name, one with "?" comes
// and goes. In the text ‹N› is a number of the construct's own, ‹V› any expression, and
// ‹a¦b› either. So constructs meet each other in ways that nobody thought of.
package truth
