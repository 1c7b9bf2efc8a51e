package sql

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/tutti-project/tutti/internal/classify"
)

// Groups is the tree of the classifier.
type Groups struct{ *base }

const groupColumns = "id, name, parent, revision, changed_at, changed_by, document"

// scanGroup reads a group. A document that cannot be read makes it defective: one
// bad row must not hide the others.
func scanGroup(row scanner) (classify.Group, error) {
	var stored classify.Group
	var document []byte
	err := row.Scan(&stored.ID, &stored.Name, &stored.Parent, &stored.Revision, at(&stored.ChangedAt), &stored.ChangedBy, &document)
	if err != nil {
		return classify.Group{}, err
	}
	var g classify.Group
	if err := json.Unmarshal(document, &g); err != nil {
		g.Defect = "it cannot be read: " + err.Error()
	}
	g.ID, g.Name, g.Parent = stored.ID, stored.Name, stored.Parent
	g.Revision, g.ChangedAt, g.ChangedBy = stored.Revision, stored.ChangedAt, stored.ChangedBy
	return g, nil
}

// readGroups reads all groups; a new store has none, but its root is there.
func readGroups(ctx context.Context, q querier) ([]classify.Group, error) {
	groups, err := collect(ctx, q, scanGroup, "SELECT "+groupColumns+" FROM groups")
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if g.IsRoot() {
			return groups, nil
		}
	}
	return append(groups, classify.NewRoot()), nil
}

// Groups implements classify.Store. What does not hang on the root, which only a
// hand in the database can bring about, comes last.
func (s *Groups) Groups(ctx context.Context) (groups []classify.Group, revision int64, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		var err error
		if revision, err = groupsRevision(ctx, q); err != nil {
			return err
		}
		groups, err = readGroups(ctx, q)
		return err
	})
	if err != nil {
		return nil, 0, explain(err, "list groups")
	}
	return withDetached(groups), revision, nil
}

func withDetached(groups []classify.Group) []classify.Group {
	ordered := classify.Ordered(groups)
	if len(ordered) == len(groups) {
		return ordered
	}
	hangs := make(map[classify.ID]bool, len(ordered))
	for _, g := range ordered {
		hangs[g.ID] = true
	}
	for _, g := range groups {
		if !hangs[g.ID] {
			ordered = append(ordered, g)
		}
	}
	return ordered
}

// GroupsRevision implements classify.Store.
func (s *Groups) GroupsRevision(ctx context.Context) (int64, error) {
	revision, err := groupsRevision(ctx, s.reads)
	return revision, explain(err, "read the revision of the groups")
}

func groupsRevision(ctx context.Context, q querier) (int64, error) {
	text, err := one[string](q.row(ctx, "SELECT value FROM counters WHERE name = 'groups'"))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// ChangeGroups implements classify.Store. Changes are made one after the other:
// they are few, and each is judged by the whole tree.
func (s *Groups) ChangeGroups(ctx context.Context, changes []classify.Change) (saved []classify.Group, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		revision, err := lockGroups(ctx, q, s.dialect)
		if err != nil {
			return err
		}
		before, err := readGroups(ctx, q)
		if err != nil {
			return err
		}
		applied, err := classify.Apply(before, changes)
		if err != nil {
			return err
		}
		if err := writeGroups(ctx, q, before, applied); err != nil {
			return err
		}
		if _, err := q.exec(ctx, "UPDATE counters SET value = $1 WHERE name = 'groups'", strconv.FormatInt(revision+1, 10)); err != nil {
			return err
		}
		saved = applied.Saved
		return nil
	})
	s.noted(err)
	if err != nil {
		return nil, explain(err, "change groups")
	}
	return saved, nil
}

// lockGroups reads the tree's revision and keeps others from changing it.
func lockGroups(ctx context.Context, q querier, d dialect) (int64, error) {
	text, err := one[string](q.row(ctx, "SELECT value FROM counters WHERE name = 'groups'"+d.forUpdate))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// writeGroups writes what differs.
func writeGroups(ctx context.Context, q querier, before []classify.Group, applied classify.Applied) error {
	known := make(map[classify.ID]int64, len(before))
	for _, g := range before {
		known[g.ID] = g.Revision
	}
	for _, id := range applied.Deleted {
		if _, err := q.exec(ctx, "DELETE FROM groups WHERE id = $1", id); err != nil {
			return err
		}
		if _, err := q.exec(ctx, "DELETE FROM delivery_modes WHERE kind = $1 AND name = $2", modeOfGroup, id); err != nil {
			return err
		}
	}
	for _, g := range applied.Saved {
		if revision, there := known[g.ID]; there && revision == g.Revision {
			continue
		}
		text, err := json.Marshal(g)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, "INSERT INTO groups ("+groupColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, parent = excluded.parent, revision = excluded.revision,
			changed_at = excluded.changed_at, changed_by = excluded.changed_by, document = excluded.document`,
			g.ID, g.Name, g.Parent, g.Revision, micros(g.ChangedAt), g.ChangedBy, text)
		if err != nil {
			return err
		}
	}
	return nil
}
