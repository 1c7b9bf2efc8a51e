// Package processes is the built-in module process: it lists the processes of a node, from /proc on Linux and by ps elsewhere.
//
// A command line may have a secret that somebody put there. Every user of the node sees it, too; answers show it as it is.
package processes
