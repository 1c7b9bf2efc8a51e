package sql

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Candidates implements compile.Reusables: for many nodes with two statements, what newest and newestStaged read of one.
func (s *Reusables) Candidates(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]compile.Candidate, error) {
	found := make(map[fleet.Certname][]compile.Candidate, len(nodes))
	names, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (c compile.Candidate, err error) {
		var stands fleet.Digest
		c.Compilation, err = scanCompilation(behind{row, []any{&c.Read, &stands}})
		c.Stands = stands
		return c, err
	}
	query := "SELECT t.inputs, t.version, c." + strings.ReplaceAll(strings.Join(strings.Fields(compilationColumns), " "), ", ", ", c.") +
		" FROM standings t JOIN compilations c ON c.id = t.compilation AND c.state = 'done'"
	named := " WHERE t.environment = $1 AND t.certname IN (SELECT value FROM " + s.words().Elements("$2") + " l) AND t.staged = "
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		clear(found)
		for _, text := range []string{
			query + " JOIN nodes n ON n.certname = t.certname JOIN catalogs k ON k.node_id = n.id AND k.received = 0 AND k.compilation = c.id AND k.digest = c.catalog" +
				named + "0",
			query + named + "1",
		} {
			list, err := collect(ctx, q, scan, text, env, names)
			if err != nil {
				return err
			}
			for _, c := range list {
				found[c.Node] = append(found[c.Node], c)
			}
		}
		return nil
	})
	return found, explain(err, "read whose catalogs may be used again in %s", env)
}

// behind scans columns into first, and what comes behind into what it is asked for.
type behind struct {
	scanner
	first []any
}

// Scan implements scanner.
func (b behind) Scan(into ...any) error { return b.scanner.Scan(append(b.first, into...)...) }

// ReuseStopsOf implements compile.Reusables.
func (s *Reusables) ReuseStopsOf(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]compile.ReuseStop, error) {
	names, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	stops, err := collect(ctx, s.reads, scanStop, "SELECT "+stopColumns+` FROM reuse_stops
		WHERE environment = $1 AND (certname = '' OR certname IN (SELECT value FROM `+
		s.words().Elements("$2")+" l)) ORDER BY stopped_at DESC, version", env, names)
	found := map[fleet.Certname][]compile.ReuseStop{}
	for _, stop := range stops {
		if stop.Node != "" {
			found[stop.Node] = append(found[stop.Node], stop)
			continue
		}
		for _, node := range nodes { // it is of all of them
			found[node] = append(found[node], stop)
		}
	}
	return found, explain(err, "read where catalogs are not used again in %s", env)
}

// WantAll is Want for each of wants, in one transaction.
func (s *Queue) WantAll(ctx context.Context, wants []compile.Want) (rows []compile.Compilation, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		rows = make([]compile.Compilation, 0, len(wants))
		for _, w := range wants {
			row, err := s.want(ctx, q, w)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, explain(err, "ask for %d catalogs", len(wants))
}

// Holdings says of each of the nodes what it has.
func (s *Reusables) Holdings(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Holding, error) {
	names, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	found := make(map[fleet.Certname]compile.Holding, len(nodes))
	_, err = collect(ctx, s.reads, func(row scanner) (none struct{}, err error) {
		var node fleet.Certname
		var h compile.Holding
		err = row.Scan(&node, &h.FactsSeq, &h.Catalog, &h.Environment, &h.Version)
		found[node] = h
		return none, err
	}, `SELECT n.certname, COALESCE(f.seq, 0), COALESCE(k.digest, ''), COALESCE(k.environment, ''), COALESCE(k.version, '') FROM nodes n LEFT JOIN factsets f ON f.node_id = n.id
		LEFT JOIN catalogs k ON k.node_id = n.id AND k.received = 0 WHERE n.certname IN (SELECT value FROM `+s.words().Elements("$1")+" l)", names)
	return found, explain(err, "read what nodes have")
}
