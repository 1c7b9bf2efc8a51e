// Package preview compiles a version for a set of nodes before they get it, and shows what it would change.
//
// Story: a user stages a version and orders a preview of it. The preview's nodes are fixed then; each node has
// a share. A share's compilation is wanted in the background. If none of the inputs of the node's stored
// catalog differs, that catalog is the answer, so only touched nodes cost a compile; these come first. As soon
// as a share's catalog is there, it is compared with the node's current one, and its changes join those of the
// other nodes: one group for each change. Shares are requested, compared and stored many at a time. When no
// share waits, the groups are stored and the preview is ready. People read it, acknowledge groups, and comment
// on them; a release hands out exactly its catalogs.
//
// # States
//
//	preview   compiling ──► ready
//	              └───────► cancelled
//	share     waiting ──► same | reordered | changed | failed | first | unable
//
// A share is first when its node has no catalog to compare with, and unable when its node cannot be compiled
// because it has no facts. Every share that is not waiting stays as it is; Step and the package's tests say so.
//
// # Failure
//
// Shares are rows: after a stop or crash of the server the preview goes on with the shares that wait. Groups
// are made from shares, and made again after a restart; only the groups of a ready preview are stored. A
// catalog that cannot be read is tried again.
//
// # What it cannot see
//
// A catalog with an input that cannot be followed (volatile) may be different by the time it is released:
// Unseen counts such catalogs by reason. One reason is that the inventory gave the code only data of nodes that
// the preview's author may see (Reach).
//
// # Concurrency
//
// Run of a Service blocks, and ends every goroutine that it starts; all other methods may be called
// concurrently. At most MaxAtOnce previews are active, the oldest first. Finished is a hint that a compilation
// has ended; all requested compilations are also checked from time to time.
//
// # Memory
//
// The memory holds the shares of the active previews, their groups with bounded examples, and the catalogs of a
// few nodes that are being compared, however many nodes there are.
//
// # Errors
//
// Invalid for a wrong request, with the field; NotFound; Conflict for a preview that is not in the state that
// an act needs; errors of ports are passed on.
//
// # Secrets
//
// Only the groups hold values of catalogs, and they hide secrets: see package diff.
package preview
