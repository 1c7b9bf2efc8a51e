// Package preview compiles a version for a set of nodes before it is theirs, and says what
// it would change.
//
// Story: somebody stages a version and asks for a preview of it. The preview's nodes are
// fixed then; each has a share. A share's compilation is wanted in the background, and answered by a
// stored catalog where nothing that it read differs, so that only touched nodes cost a
// compile; these are asked for first. As soon as a share's catalog is there it is compared with what the node has, and its
// changes join those of the other nodes: one group for each change. Shares are asked for, compared and stored many at a time. When no share waits, the groups
// are stored and the preview is ready. People read it, acknowledge groups, and comment on them; a
// release hands out exactly its catalogs.
//
// # States
//
//	preview   compiling ──► ready
//	              └───────► cancelled
//	share     waiting ──► same | reordered | changed | failed | first | unable
//
// A share is first when its node has no catalog to compare with, and unable when there
// is nothing to compile with: no facts. Every share that is not waiting stays as it is;
// Step and the package's tests say so.
//
// # Failure
//
// Shares are rows: whatever stops the server, the preview goes on with the shares that wait. Groups are
// made of shares, and made again after a restart; only those of a ready preview are
// stored. A catalog that cannot be read is tried again.
//
// # What it cannot see
//
// A catalog that read something that cannot be followed (volatile) may be another one by the time
// it is released: Unseen counts these by reason. One of them is that the inventory told its code only of
// the nodes that the preview's author may see (Reach).
//
// # Concurrency
//
// Run of a Service blocks and owns what it starts; all else may be called concurrently. At most
// MaxAtOnce previews are worked on, the oldest first. That a compilation has ended is a hint (Finished); all that
// was asked for is looked at from time to time.
//
// # Memory
//
// In memory are the shares of the previews that are worked on, their groups with bounded examples, and the
// catalogs of a few nodes that are being compared, however many nodes there are.
//
// # Errors
//
// Invalid for what is asked wrongly, with the field; NotFound; Conflict for a preview that
// is not in the state that an act needs; what ports return is passed on.
//
// # Secrets
//
// Nothing in here holds a value of a catalog, but the groups, which hide what is secret: see package diff.
package preview
