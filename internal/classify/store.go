package classify

import "context"

// ChangeKind says what a change does.
type ChangeKind string

// The kinds of change.
const (
	Create ChangeKind = "create"
	Update ChangeKind = "update"
	Delete ChangeKind = "delete"
)

// Change is one wanted change. An update replaces the whole group. With Update
// and Delete, Group.Revision is the one that the change is based on; zero asks for
// no check.
type Change struct {
	Kind  ChangeKind
	Group Group // Delete: only ID and Revision count
}

// Store keeps groups. A new store holds the root. All methods may be called
// concurrently; the caller owns what it is given and may not change what it gave.
type Store interface {
	// Groups returns all groups, parents before children and siblings by name, and
	// the revision of the whole tree they are from. A stored group that cannot be
	// used any more comes with its Defect.
	Groups(ctx context.Context) (groups []Group, revision int64, err error)
	// GroupsRevision returns the revision of the whole tree: it grows with every
	// change.
	GroupsRevision(ctx context.Context) (int64, error)
	// ChangeGroups makes all changes or none, as Apply does, and returns the
	// groups that it created or updated, as they are stored.
	ChangeGroups(ctx context.Context, changes []Change) ([]Group, error)
}
