package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

const packagesOf = `SELECT p.id, p.name, p.version, p.provider FROM node_packages i JOIN packages p ON p.id = i.package_id WHERE i.node_id = $1`

// putPackages makes list, which is sorted, the packages of a node. Packages that no
// node has any more stay, like the paths of facts: they come back.
func (s *Facts) putPackages(ctx context.Context, q querier, node int64, list []inventory.Package) error {
	before := map[inventory.Package]int64{}
	if _, err := collect(ctx, q, func(row scanner) (p inventory.Package, err error) {
		var id int64
		err = row.Scan(&id, &p.Name, &p.Version, &p.Provider)
		before[p] = id
		return p, err
	}, packagesOf, node); err != nil {
		return err
	}
	var fresh [][]any
	for _, p := range list {
		if _, ok := before[p]; ok {
			delete(before, p)
		} else {
			fresh = append(fresh, []any{p.Name, p.Version, p.Provider})
		}
	}
	for _, id := range before {
		if _, err := q.exec(ctx, "DELETE FROM node_packages WHERE node_id = $1 AND package_id = $2", node, id); err != nil {
			return err
		}
	}
	columns := []column{{"name", texts}, {"version", texts}, {"provider", texts}}
	if err := s.dialect.insert(ctx, q, "packages", columns, "ON CONFLICT DO NOTHING", fresh); err != nil {
		return err
	}
	rows := make([][]any, len(fresh))
	for i, p := range fresh {
		id, err := one[int64](q.row(ctx, "SELECT id FROM packages WHERE name = $1 AND version = $2 AND provider = $3", p...))
		if err != nil {
			return err
		}
		rows[i] = []any{node, id}
	}
	return s.dialect.insert(ctx, q, "node_packages", []column{{"node_id", ints}, {"package_id", ints}}, "ON CONFLICT DO NOTHING", rows)
}

// Packages implements inventory.PackageStore.
func (s *Facts) Packages(ctx context.Context, name fleet.Certname) ([]inventory.Package, error) {
	list, err := collect(ctx, s.reads, func(row scanner) (p inventory.Package, err error) {
		err = row.Scan(&p.Name, &p.Version, &p.Provider)
		return p, err
	}, `SELECT p.name, p.version, p.provider FROM nodes n JOIN node_packages i ON i.node_id = n.id JOIN packages p ON p.id = i.package_id
		WHERE n.certname = $1`, name)
	return inventory.DistinctPackages(list), explain(err, "read the packages of %s", name)
}
