package sql

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/fault"
)

// Declared implements appgraph.Store.
func (s *Catalogs) Declared(ctx context.Context) ([]appgraph.Declared, error) {
	declared, err := collect(ctx, s.reads, func(row scanner) (d appgraph.Declared, err error) {
		var parameters string
		err = row.Scan(&d.Node, &d.Environment, &d.Type, &d.Title, &parameters)
		d.Parameters = json.RawMessage(parameters)
		return d, err
	}, `SELECT n.certname, c.environment, r.type, r.title, COALESCE(p.parameters, '{}') FROM resources r
		JOIN nodes n ON n.id = r.node_id JOIN catalogs c ON c.node_id = r.node_id LEFT JOIN resource_parameters p ON p.hash = r.parameters
		WHERE r.type IN ($1, $2) AND r.exported = 0 AND n.deactivated_at = 0 AND n.expired_at = 0
		ORDER BY n.certname, r.type, r.title LIMIT $3`, appgraph.ApplicationType, appgraph.ComponentType, appgraph.MaxDeclared+1)
	if err == nil && len(declared) > appgraph.MaxDeclared {
		return nil, fault.New(fault.Invalid, "catalogs declare more than %d applications and components", appgraph.MaxDeclared)
	}
	return declared, explain(err, "list what declares applications")
}

// Collections implements appgraph.Store.
func (s *Catalogs) Collections(ctx context.Context) ([]appgraph.Collection, error) {
	list, err := collect(ctx, s.reads, func(row scanner) (c appgraph.Collection, err error) {
		err = row.Scan(&c.Collector, &c.Exporter, &c.Type, &c.Title, &c.Count)
		return c, err
	}, `SELECT n.certname, c.exporter, c.type, MIN(c.title), COUNT(*) FROM collected c JOIN nodes n ON n.id = c.node_id
		WHERE n.deactivated_at = 0 AND n.expired_at = 0 AND c.exporter <> n.certname
		GROUP BY n.certname, c.exporter, c.type ORDER BY n.certname, c.exporter, c.type LIMIT $1`, appgraph.MaxCollections+1)
	if err == nil && len(list) > appgraph.MaxCollections {
		return nil, fault.New(fault.Invalid, "the graph of collected resources has more than %d edges", appgraph.MaxCollections)
	}
	return list, explain(err, "list who collected from whom")
}
