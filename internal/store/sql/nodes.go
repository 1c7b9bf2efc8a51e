package sql

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Nodes is who is known, active or gone.
type Nodes struct{ *base }

const nodeColumns = `certname, environment, facts_at, catalog_at, catalog_digest, report_at, latest_report,
	latest_status, latest_noop, latest_corrective, created_at, deactivated_at, expired_at`

func scanNode(row scanner) (n inventory.Node, err error) {
	err = row.Scan(&n.Certname, &n.Environment, at(&n.FactsAt), at(&n.CatalogAt), &n.CatalogDigest, at(&n.ReportAt), &n.LatestReport,
		&n.LatestStatus, &n.LatestNoop, &n.LatestCorrective, at(&n.CreatedAt), at(&n.DeactivatedAt), at(&n.ExpiredAt))
	return n, err
}

// Nodes implements inventory.NodeStore.
func (s *Nodes) Nodes(ctx context.Context, page inventory.Page) ([]inventory.Node, error) {
	if err := inventory.CheckPage(page); err != nil {
		return nil, err
	}
	nodes, err := collect(ctx, s.reads, scanNode,
		"SELECT "+nodeColumns+" FROM nodes WHERE certname > $1 ORDER BY certname LIMIT $2", page.After, page.Limit)
	return nodes, explain(err, "list nodes")
}

// NodesNamed implements inventory.NodeStore.
func (s *Nodes) NodesNamed(ctx context.Context, names []fleet.Certname) ([]inventory.Node, error) {
	list, err := jsonNames(names)
	if err != nil {
		return nil, err
	}
	nodes, err := collect(ctx, s.reads, scanNode,
		"SELECT "+nodeColumns+" FROM nodes WHERE certname IN (SELECT value FROM "+s.words().Elements("$1")+" l) ORDER BY certname", list)
	return nodes, explain(err, "read nodes")
}

// jsonNames is a list of names as one argument of a statement.
func jsonNames(names []fleet.Certname) (string, error) {
	if err := inventory.CheckNamed(names); err != nil {
		return "", err
	}
	if names == nil {
		names = []fleet.Certname{}
	}
	text, err := json.Marshal(names)
	return string(text), err
}

// Node implements inventory.NodeStore.
func (s *Nodes) Node(ctx context.Context, name fleet.Certname) (inventory.Node, error) {
	n, err := scanNode(s.reads.row(ctx, "SELECT "+nodeColumns+" FROM nodes WHERE certname = $1", name))
	return n, explain(missing(err, "nothing is known of node %s", name), "read node %s", name)
}

// PurgeNode implements inventory.NodeStore.
func (s *Nodes) PurgeNode(ctx context.Context, name fleet.Certname) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		known, err := s.purgeNamed(ctx, q, name)
		if err == nil && !known {
			err = fault.New(fault.NotFound, "nothing is known of node %s", name)
		}
		return err
	})
	return explain(err, "purge node %s", name)
}

// purgeNamed forgets a node; known is whether there was anything to forget.
func (s *Nodes) purgeNamed(ctx context.Context, q querier, name fleet.Certname) (known bool, err error) {
	compilations, err := q.exec(ctx, "DELETE FROM compilations WHERE certname = $1", name)
	if err != nil {
		return false, err
	}
	for _, text := range []string{
		"DELETE FROM generations WHERE certname = $1",
		"DELETE FROM deliveries WHERE certname = $1",
		"DELETE FROM delivery_modes WHERE kind = 'node' AND name = $1",
		"DELETE FROM run_events WHERE node = $1",
		"DELETE FROM event_runs WHERE node = $1",
		"DELETE FROM attendances WHERE certname = $1",
		"DELETE FROM agents WHERE certname = $1",
	} {
		if _, err := q.exec(ctx, text, name); err != nil {
			return false, err
		}
	}
	accepted, err := q.exec(ctx, "DELETE FROM fact_intake WHERE certname = $1", name)
	if err != nil {
		return false, err
	}
	ids, err := collect(ctx, q, one[int64], "SELECT id FROM nodes WHERE certname = $1"+s.dialect.forUpdate, name)
	if err != nil {
		return false, err
	}
	if err := s.noteGone(ctx, q, "certname = $1", name); err != nil {
		return false, err
	}
	for _, text := range []string{
		"DELETE FROM standings WHERE certname = $1",
		"DELETE FROM chains WHERE certname = $1",
		"DELETE FROM catalog_losses WHERE certname = $1",
		"DELETE FROM catalog_lets WHERE kind = 'node' AND name = $1",
		"DELETE FROM changes WHERE certname = $1 AND kind <> 'exports'",
	} {
		if _, err := q.exec(ctx, text, name); err != nil {
			return false, err
		}
	}
	if err := s.usePaths(ctx, q); err != nil { // after the node's row, as who writes facts does
		return false, err
	}
	for _, id := range ids {
		if err := purge(ctx, q, id); err != nil {
			return false, err
		}
	}
	listed, err := unlist(ctx, q, name)
	return len(ids) > 0 || compilations > 0 || accepted > 0 || listed, err
}

func purge(ctx context.Context, q querier, id int64) error {
	for _, text := range []string{
		"DELETE FROM events WHERE report_id IN (SELECT id FROM reports WHERE node_id = $1)",
		"DELETE FROM report_documents WHERE report_id IN (SELECT id FROM reports WHERE node_id = $1)",
		"DELETE FROM reports WHERE node_id = $1",
		"DELETE FROM collected WHERE node_id = $1",
		"DELETE FROM edges WHERE node_id = $1",
		"DELETE FROM resources WHERE node_id = $1",
		"DELETE FROM catalog_orders WHERE node_id = $1",
		"DELETE FROM catalogs WHERE node_id = $1",
		"DELETE FROM catalog_inputs WHERE node_id = $1",
		"DELETE FROM node_packages WHERE node_id = $1",
		"DELETE FROM facts WHERE node_id = $1",
		"DELETE FROM fact_documents WHERE node_id = $1",
		"DELETE FROM factsets WHERE node_id = $1",
		"DELETE FROM nodes WHERE id = $1",
	} {
		if _, err := q.exec(ctx, text, id); err != nil {
			return err
		}
	}
	return nil
}
