package sql

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Facts are stored by node, so a question for the nodes with a fact looks at each node. Paths that questions often compare with a text
// have an index besides, which costs a row for each node and path; see decision 51. indexed_paths says which paths these are, and
// indexed_facts has their values. Triggers keep those, whichever version of the program writes facts.

const (
	indexAfter      = 3                   // questions to this process that compare a path: it is indexed
	maxIndexedPaths = 64                  // at once
	maxCountedPaths = 1000                // whose questions are counted
	askedEvery      = 24 * time.Hour      // how exactly it is kept when a path was asked for
	indexIdle       = 30 * 24 * time.Hour // a path that nobody asked for in this time gives its place to another one
	indexTime       = time.Minute         // that indexing a path may take
)

// factIndex has those paths indexed that questions compare often.
type factIndex struct {
	*base
	clock   func() time.Time
	mu      sync.Mutex
	counted map[string]int // how often questions compared a path that is not indexed
}

// indexedPath is a path that is indexed.
type indexedPath struct {
	path      string
	id, asked int64
}

func scanIndexedPath(row scanner) (p indexedPath, err error) {
	return p, row.Scan(&p.path, &p.id, &p.asked)
}

// indexed lists what is indexed, in the state of the records that a question is asked of: so the index is whole for it.
func (i *factIndex) indexed(ctx context.Context, on querier) ([]indexedPath, error) {
	return collect(ctx, on, scanIndexedPath, "SELECT p.path, x.path_id, x.asked_at FROM indexed_paths x JOIN fact_paths p ON p.id = x.path_id")
}

// asked notes the paths that a question compared, and indexes those that were often. The question is answered already: what goes wrong is
// logged, and tried again when the path was asked for as often.
func (i *factIndex) asked(ctx context.Context, paths []string, have []indexedPath) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), indexTime)
	defer cancel()
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		at := slices.IndexFunc(have, func(p indexedPath) bool { return p.path == path })
		var err error
		switch {
		case at >= 0:
			err = i.touch(ctx, have[at])
		case i.count(path):
			err = i.index(ctx, path)
		}
		if err != nil {
			i.log.WarnContext(ctx, "indexing a fact failed, will retry", "path", path, "err", err)
		}
	}
}

// count counts a question, and says whether there were enough of them.
func (i *factIndex) count(path string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.counted) >= maxCountedPaths {
		clear(i.counted)
	}
	i.counted[path]++
	if i.counted[path] < indexAfter {
		return false
	}
	delete(i.counted, path)
	return true
}

// touch notes that an indexed path was asked for.
func (i *factIndex) touch(ctx context.Context, p indexedPath) error {
	now := i.clock()
	if p.asked > micros(now.Add(-askedEvery)) {
		return nil
	}
	return i.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE indexed_paths SET asked_at = $1 WHERE path_id = $2", micros(now), p.id)
		return err
	})
}

// index indexes a path, if there is one and there is room. Nobody writes facts meanwhile: what was written before is copied, what is written
// after comes by the triggers.
func (i *factIndex) index(ctx context.Context, path string) error {
	now := i.clock()
	err := i.write(ctx, func(ctx context.Context, q querier) error {
		if i.dialect.postgres { // who asked waits for this, and whoever writes facts would wait with it
			if _, err := q.exec(ctx, "SET LOCAL lock_timeout = '2s'"); err != nil {
				return err
			}
		}
		if err := i.awaitFacts(ctx, q); err != nil {
			return err
		}
		ids, err := collect(ctx, q, one[int64], "SELECT id FROM fact_paths WHERE path = $1 AND id NOT IN (SELECT path_id FROM indexed_paths)", path)
		if err != nil || len(ids) == 0 {
			return err
		}
		room, err := i.room(ctx, q, now)
		if err != nil || !room {
			return err
		}
		if _, err := q.exec(ctx, "INSERT INTO indexed_paths (path_id, asked_at) VALUES ($1, $2)", ids[0], micros(now)); err != nil {
			return err
		}
		_, err = q.exec(ctx, copyFacts, ids[0])
		return err
	})
	if err != nil || !i.dialect.postgres {
		return err
	}
	_, err = i.pool.ExecContext(ctx, "ANALYZE indexed_facts") // without it the next questions are planned blindly
	return err
}

// copyFacts looks path $1 up for each node: PostgreSQL would read all facts if it could make a join of this.
var copyFacts = fmt.Sprintf(`INSERT INTO indexed_facts (node_id, path_id, value) SELECT v.node_id, CAST($1 AS BIGINT), v.value FROM (
	SELECT n.id AS node_id, (SELECT substr(f.value, 1, %d) FROM facts f WHERE f.node_id = n.id AND f.path_id = $1 AND f.kind = 4) AS value FROM nodes n
	) v WHERE v.value IS NOT NULL`, query.IndexedLength)

// room makes room for one more path, if it is needed and a path may go. It says whether there is room.
func (i *factIndex) room(ctx context.Context, q querier, now time.Time) (bool, error) {
	have, err := one[int](q.row(ctx, "SELECT count(*) FROM indexed_paths"))
	if err != nil || have < maxIndexedPaths {
		return err == nil, err
	}
	idle, err := collect(ctx, q, one[int64],
		"SELECT path_id FROM indexed_paths WHERE asked_at < $1 ORDER BY asked_at, path_id LIMIT 1", micros(now.Add(-indexIdle)))
	if err != nil || len(idle) == 0 {
		return false, err
	}
	for _, text := range []string{"DELETE FROM indexed_facts WHERE path_id = $1", "DELETE FROM indexed_paths WHERE path_id = $1"} {
		if _, err := q.exec(ctx, text, idle[0]); err != nil {
			return false, err
		}
	}
	return true, nil
}
