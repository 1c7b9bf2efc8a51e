package sql

import (
	"context"
	"fmt"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Catalogue is which modules nodes have, and what these can do.
type Catalogue struct{ *base }

// Catalogue implements catalogue.Store.
func (s *Catalogue) Catalogue(ctx context.Context) (known catalogue.Known, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		known.Agents, err = collect(ctx, q, func(row scanner) (a catalogue.Agent, err error) {
			return a, row.Scan(&a.Node, &a.Set, &a.Version, &a.OS, &a.Arch, at(&a.Told))
		}, "SELECT certname, modules, version, os, arch, told_at FROM agents")
		if err != nil {
			return err
		}
		known.Modules, err = collect(ctx, q, func(row scanner) (m catalogue.Described, err error) {
			return m, row.Scan(&m.Digest, &m.Name, &m.Version, &m.Provider, &m.Description, at(&m.Known), &m.Bytes)
		}, "SELECT digest, name, version, provider, description, known_at, bytes FROM module_descriptions")
		if err != nil {
			return err
		}
		known.Sets, err = readSets(ctx, q)
		return err
	})
	return known, explain(err, "read which modules nodes have")
}

func readSets(ctx context.Context, q querier) (map[fleet.Digest]action.Set, error) {
	sets := map[fleet.Digest]action.Set{}
	digests, err := collect(ctx, q, one[fleet.Digest], "SELECT digest FROM module_sets")
	if err != nil {
		return nil, err
	}
	for _, digest := range digests {
		sets[digest] = action.Set{}
	}
	_, err = collect(ctx, q, func(row scanner) (struct{}, error) {
		var digest fleet.Digest
		var l action.Listed
		err := row.Scan(&digest, &l.Name, &l.Provider, &l.Version, &l.Digest, &l.Problem)
		sets[digest] = append(sets[digest], l)
		return struct{}{}, err
	}, "SELECT set_digest, name, provider, version, digest, problem FROM set_modules")
	for digest, set := range sets {
		sets[digest] = set.Sorted() // databases sort texts by other rules
	}
	return sets, err
}

// The columns that are written together.
func agentRow() []column {
	return []column{{"certname", texts}, {"modules", texts}, {"version", texts}, {"os", texts}, {"arch", texts}, {"told_at", ints}}
}

func setModuleRow() []column {
	return []column{{"set_digest", texts}, {"name", texts}, {"provider", texts}, {"version", texts}, {"digest", texts}, {"problem", texts}}
}

func descriptionRow() []column {
	return []column{
		{"digest", texts}, {"name", texts}, {"version", texts}, {"provider", texts}, {"description", texts}, {"known_at", ints}, {"bytes", ints}, {"metadata", blobs},
	}
}

// SaveCatalogue implements catalogue.Store.
func (s *Catalogue) SaveCatalogue(ctx context.Context, c catalogue.Change) error {
	var sets, members, modules, agents [][]any
	for digest, set := range c.Sets {
		sets = append(sets, []any{string(digest)})
		for _, l := range set {
			members = append(members, []any{string(digest), query.Clean(l.Name), string(l.Provider), query.Clean(l.Version), string(l.Digest), query.Clean(l.Problem)})
		}
	}
	for _, m := range c.Modules {
		modules = append(modules, []any{
			string(m.Digest), m.Name, query.Clean(m.Version), string(m.Provider), query.Clean(m.Description), micros(m.Known), m.Bytes, s.packer.pack(m.Text),
		})
	}
	for _, a := range c.Agents {
		agents = append(agents, []any{string(a.Node), string(a.Set), query.Clean(a.Version), query.Clean(a.OS), query.Clean(a.Arch), micros(a.Told)})
	}
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		const first = "ON CONFLICT DO NOTHING"
		err := s.dialect.insert(ctx, q, "agents", agentRow(), "ON CONFLICT (certname) DO UPDATE SET modules = excluded.modules, "+
			"version = excluded.version, os = excluded.os, arch = excluded.arch, told_at = excluded.told_at", agents)
		if err != nil {
			return err
		}
		if err := forgetModules(ctx, q, c); err != nil {
			return err
		}
		if err := s.dialect.insert(ctx, q, "module_sets", []column{{"digest", texts}}, first, sets); err != nil {
			return err
		}
		if err := s.dialect.insert(ctx, q, "set_modules", setModuleRow(), first, members); err != nil {
			return err
		}
		return s.dialect.insert(ctx, q, "module_descriptions", descriptionRow(), first, modules)
	})
	return explain(err, "keep which modules nodes have")
}

// forgetModules forgets what is in no use: the agents are written already.
func forgetModules(ctx context.Context, q querier, c catalogue.Change) error {
	for _, digest := range c.ForgetSets {
		for _, text := range []string{"DELETE FROM module_sets WHERE digest = $1", "DELETE FROM set_modules WHERE set_digest = $1"} {
			if _, err := q.exec(ctx, text+" AND NOT EXISTS (SELECT 1 FROM agents WHERE modules = $1)", digest); err != nil {
				return err
			}
		}
	}
	for _, digest := range c.ForgetModules {
		const forget = "DELETE FROM module_descriptions WHERE digest = $1 AND NOT EXISTS (SELECT 1 FROM set_modules WHERE digest = $1)"
		if _, err := q.exec(ctx, forget, digest); err != nil {
			return err
		}
	}
	return nil
}

// Stamp implements catalogue.Store. What an agent says has a new time when it is another one; the sum must not be too large for any number of them.
func (s *Catalogue) Stamp(ctx context.Context) (string, error) {
	var sets, modules, agents, told int64
	err := s.reads.row(ctx, `SELECT (SELECT count(*) FROM module_sets), (SELECT count(*) FROM module_descriptions), count(*),
		CAST(coalesce(sum(told_at % 1000000007), 0) AS BIGINT) FROM agents`).Scan(&sets, &modules, &agents, &told)
	return fmt.Sprintf("%d %d %d %d", sets, modules, agents, told), explain(err, "look whether nodes' modules changed")
}

// Metadata implements catalogue.Store.
func (s *Catalogue) Metadata(ctx context.Context, digest fleet.Digest) ([]byte, error) {
	packed, err := one[[]byte](s.reads.row(ctx, "SELECT metadata FROM module_descriptions WHERE digest = $1", digest))
	if err != nil {
		return nil, explain(missing(err, "no metadata have the digest %s", digest.Short()), "read the metadata of a module")
	}
	text, err := s.packer.unpack(packed)
	return text, explain(err, "read the metadata of a module")
}
