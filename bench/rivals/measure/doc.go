// Package measure turns what the kernel knows of a tree of processes, and what
// a load client saw, into the figures of a benchmark report.
//
// # CPU
//
// [Tree] sums user and system time of a process, of everything below it, and
// of the children that were reaped on the way, as /proc/PID/stat tells. A
// forked worker that ended counts through its parent, so a difference of two
// samples is what the whole server burnt in between.
//
// # Memory
//
// PSS shares a page among those who map it; so a zygote and its forks, or
// PostgreSQL and its shared buffers, are counted once. RSS is given beside it
// for comparison with other people's figures, and counts shared pages again
// and again.
//
// # Units
//
// CPU is a time.Duration, memory is bytes, latency is a time.Duration; JSON
// output says the unit in the name of each field.
//
// # Errors
//
// A process that ends while it is looked at is left out. Only a root process
// that is gone is an error.
package measure
