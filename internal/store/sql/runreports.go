package sql

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// RunReport implements inventory.RunStore.
func (s *Reports) RunReport(ctx context.Context, node fleet.Certname, transaction string) (inventory.Report, error) {
	id, err := one[string](s.reads.row(ctx, `SELECT r.digest FROM reports r WHERE r.node_id = (SELECT id FROM nodes WHERE certname = $1)
		AND r.transaction_uuid = $2 ORDER BY r.received_at DESC, r.digest DESC LIMIT 1`, node, transaction))
	if err != nil {
		return inventory.Report{}, explain(missing(err, "there is no report of the run %.80s of %s", transaction, node), "find the report of a run of %s", node)
	}
	return s.Report(ctx, id)
}

// LatestReports implements inventory.RunStore.
func (s *Reports) LatestReports(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]inventory.Report, error) {
	list, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	reports, err := collect(ctx, s.reads, func(row scanner) (r inventory.Report, err error) {
		err = row.Scan(reportFields(&r)...)
		return r, err
	}, "SELECT "+reportColumns+" FROM nodes n JOIN reports r ON r.digest = n.latest_report WHERE n.certname IN (SELECT value FROM "+
		s.words().Elements("$1")+" l)", list)
	latest := make(map[fleet.Certname]inventory.Report, len(reports))
	for _, r := range reports {
		latest[r.Certname] = r
	}
	return latest, explain(err, "read the latest reports")
}

// PendingNodes implements inventory.RunStore.
func (s *Reports) PendingNodes(ctx context.Context) ([]fleet.Certname, error) {
	nodes, err := collect(ctx, s.reads, one[fleet.Certname],
		"SELECT n.certname FROM nodes n JOIN reports r ON r.digest = n.latest_report WHERE n.latest_noop = 1 AND r.noop_pending = 1")
	return nodes, explain(err, "list nodes whose last run would have changed something")
}

// Broken implements compile.Breakages.
func (s *Queue) Broken(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Compilation, error) {
	list, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	columns := "c." + strings.ReplaceAll(strings.Join(strings.Fields(compilationColumns), " "), ", ", ", c.")
	rows, err := collect(ctx, s.reads, scanCompilation, "SELECT "+columns+brokenOnes+" AND n.certname IN (SELECT value FROM "+s.words().Elements("$1")+" l)", list)
	broken := make(map[fleet.Certname]compile.Compilation, len(rows))
	for _, c := range rows {
		broken[c.Node] = c
	}
	return broken, explain(err, "list nodes whose catalogs do not compile")
}

// brokenOnes is the compilations that failed, of nodes that are in their environment, and that were the last ones.
const brokenOnes = ` FROM compilations c JOIN nodes n ON n.certname = c.certname AND n.environment = c.environment
	WHERE c.state = 'failed' AND c.staged = 0 AND NOT EXISTS (SELECT 1 FROM compilations o WHERE o.certname = c.certname AND o.environment = c.environment
		AND o.state IN ('done', 'failed') AND o.staged = 0 AND o.id > c.id)`

// BrokenNodes implements compile.Breakages.
func (s *Queue) BrokenNodes(ctx context.Context) ([]fleet.Certname, error) {
	nodes, err := collect(ctx, s.reads, one[fleet.Certname], "SELECT c.certname"+brokenOnes)
	return nodes, explain(err, "list nodes whose catalogs do not compile")
}
