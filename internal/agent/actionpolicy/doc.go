// Package actionpolicy decides by MCollective's action policy files who may ask for which action of a module on this node.
//
// A Set is the files of one directory: MODULE.policy for a module, default.policy for modules without a file of their own, and groups,
// which names groups of callers. A module without a file, where there is no default.policy, is not narrowed.
//
//	policy default deny
//	# verdict	callers	actions	facts	classes
//	allow	tutti=ana	*	*	*
//	allow	/^tutti=op/ dba	status usage	role=db os.release.major>=12	*
//	deny	*	remove	environment=production	role::web
//
// The first row counts of which all columns fit; without one the default counts, which is deny unless the file says allow. Columns
// are separated by tabs. In a row without tabs they are separated by two or more spaces, and a row of four or five words needs
// no more than one. The last column may be left out.
//
//	callers  *, or a list: a name, a group, /a regular expression/; one must fit
//	actions  *, or a list; one must be the action
//	facts    *, or a list of conditions, which must all hold: = == != < <= > >= =~; numbers are compared as numbers; =/re/ is =~, and no other operator takes /re/
//	classes  *, or a list of Puppet's classes, which the node's last catalog must all have; /re/ is one that fits
//
// A condition on a fact that the node does not have, or that is no single value, does not hold, also with !=.
//
// # Failure
//
// It fails closed. A file with a row that cannot be understood denies everything in its module; a broken groups file denies it in every module that
// has a file. A row whose facts or classes are not known does not allow, but denies.
//
// # Errors
//
// All are of kind Invalid, and name file and line.
//
// # Concurrency
//
// Everything is a value that is not changed once it is made.
//
// # Sources
//
// The action policy plugin of MCollective and Choria. Unlike it, compound expressions are refused, a row that cannot be understood is not skipped, and
// default.policy needs no switch.
package actionpolicy
