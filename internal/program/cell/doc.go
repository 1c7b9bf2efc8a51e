// Package cell runs programs that carry out code which is not trusted: Puppet's compilers,
// an operator's hooks. What runs in a cell reaches what its Spec names and nothing else of the
// machine, and everything that it starts ends with it.
//
// Story: a Keeper finds out at the start what this machine has, and proves it by a forbidden
// read. Start then runs the program's own binary again, as a guard, which the import of this
// package makes of it: the guard builds the cell around itself, starts the program in it, and
// stays. It answers questions, kills, and clears up what was left behind; when the server is
// gone, it ends the cell.
//
//	server ──► guard (outside of Landlock and seccomp) ──► program ──► what it starts
//	   └── socket: the order, a report; then kills, questions about memory; its end is the cell's
//
// # Layers
//
// Namespaces (as root, or with a user namespace): process numbers and /proc of its own, no network
// unless ports are named, file systems read-only but for a private one of bounded size, directories of
// others hidden. Landlock: files, TCP ports, signals and abstract sockets. Seccomp: no looking into other
// processes, no mounts, keys, BPF; another architecture's calls end the process. Another user, when the
// server is root and one was named. No new privileges, no capabilities, limits of processes, files and
// their size. Each layer that is missing is named by Standing.
//
// # Failure
//
// When the server dies, its socket ends and the guard ends the cell. When the guard dies, so does
// everything in its namespace; without one, the kernel kills the program and what it left behind stays.
//
// # Errors
//
// Unavailable when a cell cannot be built; Invalid when settings name what is not there.
//
// # Concurrency
//
// A Keeper and a Process may be used concurrently.
package cell
