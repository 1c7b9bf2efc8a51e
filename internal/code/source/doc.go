// Package source deploys environments from git repositories.
//
// Story: a Source is a repository whose branches are environments. The service looks at the repository now and then, when a webhook says that
// somebody pushed, and when it starts: it asks for the newest commit of each branch, and Plan says which environments differ. Each of those is
// deployed: the branch is fetched and checked out, its Puppetfile resolved, and the work tree becomes a version by the same way as every other
// deploy, with the same check.
//
// A webhook or a poll is only a hint. What is deployed is what the repository has when the deploy begins: a hint that comes twice, late
// or with a lie in it does no harm.
//
// # States
//
// Each environment has one row, a Branch, with the newest deploy of it:
//
//	queued ──► deploying ──► complete, failed ──► queued ...
//	              └── asked for again meanwhile: NextID is set, and it is queued when it has ended
//
// So at most one deploy of an environment runs and one waits: whoever asks for another gets the number of the one that waits. The rows survive
// the server: what was queued or deploying when it was killed is queued when it starts.
//
// # Branches that are gone
//
// An environment whose branch was deleted stays, and its row says so, unless the source was told to purge. A repository that
// has no branch at all for the source purges nothing: it is more likely to be the wrong repository than an empty one.
//
// # Failure
//
// A deploy fails with the reason in its row, and the environment stays as it is. The same commit is tried again when the
// reason may pass (the repository cannot be reached), at the next poll; otherwise when somebody asks for it.
//
// # Errors
//
// Invalid for settings that cannot be used; NotFound for a source or an environment that there is none of; Conflict for a source that there is.
//
// # Concurrency
//
// A Service may be used concurrently.
package source
