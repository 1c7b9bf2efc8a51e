package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

func noiseOf(row ruleRow, rule *preview.NoiseRule) any {
	rule.Name, rule.Stamp = row.name, row.Stamp
	return &rule.Noise
}

// NoiseRules implements preview.NoiseStore.
func (s *Previews) NoiseRules(ctx context.Context) ([]preview.NoiseRule, error) {
	rows, err := s.rules(ctx, noiseRules)
	return readRules(rows, err, noiseOf)
}

// NoiseHistory implements preview.NoiseStore.
func (s *Previews) NoiseHistory(ctx context.Context, name string) ([]preview.NoiseRule, error) {
	rows, err := s.ruleHistory(ctx, noiseRules, name)
	return readRules(rows, err, noiseOf)
}

// SaveNoise implements preview.NoiseStore.
func (s *Previews) SaveNoise(ctx context.Context, r preview.NoiseRule) (preview.NoiseRule, error) {
	return storeRule(ctx, s.base, noiseRules, ruleRow{name: r.Name, Stamp: r.Stamp}, r.Noise, noiseOf)
}

// Acknowledgements implements preview.Store.
func (s *Previews) Acknowledgements(ctx context.Context, env fleet.Environment, limit int) ([]preview.Acknowledgement, error) {
	acks, err := collect(ctx, s.reads, func(row scanner) (a preview.Acknowledgement, err error) {
		var packed []byte
		if err = row.Scan(&a.Preview, &a.Author, &packed); err == nil {
			err = s.unpackJSON(packed, &a.Change)
		}
		return a, err
	}, `SELECT r.preview_id, r.author, g.document FROM preview_remarks r
		JOIN previews p ON p.id = r.preview_id
		JOIN preview_groups g ON g.preview_id = r.preview_id AND g.key = r.change_key
		WHERE p.environment = $1 AND r.kind = 'acknowledged' AND r.id = (SELECT MAX(n.id) FROM preview_remarks n
			WHERE n.preview_id = r.preview_id AND n.change_key = r.change_key AND n.kind IN ('acknowledged', 'withdrawn'))
		ORDER BY r.preview_id DESC, g.place LIMIT $2`, env, limit)
	return acks, explain(err, "read what was acknowledged in %s", env)
}

// WholeGroups implements preview.Store.
func (s *Previews) WholeGroups(ctx context.Context, id int64, page preview.GroupPage) ([]preview.Group, error) {
	groups, err := collect(ctx, s.reads, func(row scanner) (g preview.Group, err error) {
		var packed, nodes []byte
		if err = row.Scan(&packed, &nodes); err != nil {
			return g, err
		}
		if err = s.unpackJSON(packed, &g.Change); err != nil {
			return g, err
		}
		if nodes, err = s.packer.unpack(nodes); err == nil {
			g.Nodes, err = unpackNumbers(nodes)
		}
		return g, err
	}, "SELECT document, nodes FROM preview_groups WHERE preview_id = $1 AND place >= $2 ORDER BY place LIMIT $3", id, page.From, page.Limit)
	return groups, explain(err, "read the changes of preview %d with their nodes", id)
}
