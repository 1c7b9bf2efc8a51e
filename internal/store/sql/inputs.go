package sql

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// SaveCatalogInputs implements inventory.InputStore.
func (s *Catalogs) SaveCatalogInputs(ctx context.Context, in inventory.CatalogInputs) error {
	pairs := make([][2]string, len(in.Inputs))
	for i, input := range in.Inputs {
		pairs[i] = [2]string{input.Type, input.Name}
	}
	text, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		if err := ensureNode(ctx, q, in.Certname, in.ProducedAt); err != nil {
			return err
		}
		_, err := q.exec(ctx, `INSERT INTO catalog_inputs (node_id, uuid, produced_at, inputs) SELECT id, $1, $2, $3 FROM nodes WHERE certname = $4
			ON CONFLICT (node_id) DO UPDATE SET uuid = excluded.uuid, produced_at = excluded.produced_at, inputs = excluded.inputs
			WHERE catalog_inputs.produced_at <= excluded.produced_at`, in.UUID, micros(in.ProducedAt), string(text), in.Certname)
		return err
	})
	return explain(err, "save the catalog inputs of %s", in.Certname)
}

// CatalogInputs implements inventory.InputStore.
func (s *Catalogs) CatalogInputs(ctx context.Context, name fleet.Certname) (inventory.CatalogInputs, error) {
	in := inventory.CatalogInputs{Certname: name}
	var text string
	err := s.reads.row(ctx, `SELECT i.uuid, i.produced_at, i.inputs FROM nodes n JOIN catalog_inputs i ON i.node_id = n.id WHERE n.certname = $1`, name).
		Scan(&in.UUID, at(&in.ProducedAt), &text)
	var pairs [][2]string
	if err == nil {
		err = json.Unmarshal([]byte(text), &pairs)
	}
	for _, pair := range pairs {
		in.Inputs = append(in.Inputs, inventory.CatalogInput{Type: pair[0], Name: pair[1]})
	}
	return in, explain(missing(err, "%s has no catalog inputs", name), "read the catalog inputs of %s", name)
}
