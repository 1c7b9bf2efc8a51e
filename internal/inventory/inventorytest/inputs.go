package inventorytest

import (
	"context"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// SaveCatalogInputs implements inventory.InputStore.
func (s *Fake) SaveCatalogInputs(_ context.Context, in inventory.CatalogInputs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensure(in.Certname, in.ProducedAt)
	if !s.inputs[in.Certname].ProducedAt.After(in.ProducedAt) {
		s.inputs[in.Certname] = in
	}
	return nil
}

// CatalogInputs implements inventory.InputStore.
func (s *Fake) CatalogInputs(_ context.Context, node fleet.Certname) (inventory.CatalogInputs, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, ok := s.inputs[node]
	if !ok {
		return in, fault.New(fault.NotFound, "%s has no catalog inputs", node)
	}
	return in, nil
}

func catalogInputs(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	in := func(uuid string, at time.Time, names ...string) inventory.CatalogInputs {
		in := inventory.CatalogInputs{Origin: inventory.Origin{ProducedAt: at}, Certname: "a.example", UUID: uuid}
		for _, name := range names {
			in.Inputs = append(in.Inputs, inventory.CatalogInput{Type: "hiera", Name: name})
		}
		return in
	}
	_, err := s.CatalogInputs(ctx, "a.example")
	isKind(t, "nothing", err, fault.NotFound)
	for _, save := range []inventory.CatalogInputs{in("1", start, "b::c", "a"), in("0", start.Add(-time.Second), "late")} {
		ok(t, s.SaveCatalogInputs(ctx, save))
		got, err := s.CatalogInputs(ctx, "a.example")
		ok(t, err)
		same(t, "inputs", in("1", start, "b::c", "a"), got)
	}
	ok(t, s.SaveCatalogInputs(ctx, in("2", start)))
	got, err := s.CatalogInputs(ctx, "a.example")
	ok(t, err)
	same(t, "inputs", in("2", start), got)
	isActive(t, "its node", s, "a.example", true)
	ok(t, s.PurgeNode(ctx, "a.example"))
	_, err = s.CatalogInputs(ctx, "a.example")
	isKind(t, "purged", err, fault.NotFound)
}
