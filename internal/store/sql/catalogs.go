package sql

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Catalogs is each node's newest catalog, with its resources and edges.
type Catalogs struct{ *base }

// storedCatalog is a catalog with the ids of its rows.
type storedCatalog struct {
	inventory.Catalog
	node, seq int64
	resources []storedResource
	edges     map[inventory.Edge]int64
}

type storedResource struct {
	inventory.Resource
	id   int64
	tags string // as stored
	hash []byte // of the parameters; nil without any
}

// given is the catalog that was compiled here; empty: none.
func (c storedCatalog) given() fleet.Digest {
	if c.Received {
		return ""
	}
	return c.Digest
}

// SaveCatalog implements inventory.CatalogStore. Rows are compared before the
// write; the write checks that they are still the same.
func (s *Catalogs) SaveCatalog(ctx context.Context, c inventory.Catalog) error {
	c.Resources, c.Edges = inventory.Distinct(c.Resources, c.Edges)
	c.Collected = inventory.DistinctCollected(c.Collected)
	err := again(ctx, func() error {
		before, err := s.catalogHead(ctx, s.reads, c.Certname)
		if err != nil {
			return err
		}
		next, stands := after(before, c)
		if stands {
			return nil
		}
		if c.Over != nil && before.given() != *c.Over {
			return fault.Wrap(fault.Conflict, inventory.ErrReplaced, "%s has another catalog by now", c.Certname)
		}
		d := catalogDiff{before: before}
		if before.seq == 0 || before.Digest != c.Digest {
			if err := s.snapshot(ctx, func(ctx context.Context, q querier) error { return s.catalogRows(ctx, q, &before) }); err != nil {
				return err
			}
			d = compareCatalogs(before, c)
			d.order = s.packer.pack(orderOf(c.Resources))
		}
		return s.write(ctx, func(ctx context.Context, q querier) error {
			if err := s.mustBeLeased(ctx, q, c); err != nil {
				return err
			}
			return s.putCatalog(ctx, q, next, d)
		})
	})
	s.noted(err)
	return explain(err, "save the catalog of %s", c.Certname)
}

// mustBeLeased keeps what comes of a compilation that is not wanted any more away: its
// node was purged or left. Who purges waits until c is written.
func (s *Catalogs) mustBeLeased(ctx context.Context, q querier, c inventory.Catalog) error {
	if c.Attempt == 0 {
		return nil
	}
	_, err := one[int64](q.row(ctx, "SELECT id FROM compilations WHERE id = $1 AND state = 'leased' AND attempts = $2"+s.dialect.forUpdate,
		c.Compilation, c.Attempt))
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.Conflict, "compilation %d of %s is not leased any more", c.Compilation, c.Certname)
	}
	return err
}

// after is c as it is stored after before; stands is set when that stays instead.
func after(before storedCatalog, c inventory.Catalog) (next inventory.Catalog, stands bool) {
	switch {
	case c.Received:
		stands = micros(c.ProducedAt) < micros(before.ProducedAt)
		c.Compilation = before.Compilation
	case c.Compilation < before.Compilation:
		stands = true
	case c.ProducedAt.IsZero():
		c.ProducedAt = c.CompiledAt
	}
	return c, stands
}

// catalogHead reads the catalog's own row; seq is zero when there is none.
func (s *Catalogs) catalogHead(ctx context.Context, q querier, name fleet.Certname) (c storedCatalog, err error) {
	c.Certname = name
	err = q.row(ctx, `SELECT c.node_id, c.seq, c.environment, c.digest, c.version, c.uuid, c.transaction_uuid, c.compiled_at, c.compilation,
		c.produced_at, c.producer, c.job_id, c.config_version, c.code_id, c.received
		FROM nodes n JOIN catalogs c ON c.node_id = n.id WHERE n.certname = $1`, name).
		Scan(&c.node, &c.seq, &c.Environment, &c.Digest, &c.Version, &c.UUID, &c.Transaction, at(&c.CompiledAt), &c.Compilation,
			at(&c.ProducedAt), &c.Producer, &c.JobID, &c.ConfigVersion, &c.CodeID, &c.Received)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return c, err
}

// catalogRows reads resources and edges. Their order is not that of the catalog.
func (s *Catalogs) catalogRows(ctx context.Context, q querier, c *storedCatalog) (err error) {
	c.resources, err = collect(ctx, q, scanResource, `SELECT r.id, r.type, r.title, r.exported, r.file, r.line, r.tags, r.parameters,
		COALESCE(p.parameters, '') FROM resources r LEFT JOIN resource_parameters p ON p.hash = r.parameters WHERE r.node_id = $1`, c.node)
	if err != nil {
		return err
	}
	c.edges = map[inventory.Edge]int64{}
	_, err = collect(ctx, q, func(row scanner) (e inventory.Edge, err error) {
		var id int64
		err = row.Scan(&id, &e.Source, &e.Target, &e.Relationship)
		c.edges[e] = id
		return e, err
	}, "SELECT id, source, target, relationship FROM edges WHERE node_id = $1", c.node)
	return err
}

func scanResource(row scanner) (r storedResource, err error) {
	var parameters string
	err = row.Scan(&r.id, &r.Type, &r.Title, &r.Exported, &r.File, &r.Line, &r.tags, &r.hash, &parameters)
	if parameters != "" {
		r.Parameters = json.RawMessage(parameters)
	}
	return r, err
}

// catalogDiff is what a write of a catalog was prepared with.
type catalogDiff struct {
	before    storedCatalog
	order     []byte // nil when no row changes
	gone      []int64
	added     []storedResource
	edgesGone []int64
	edgesNew  []inventory.Edge
	exports   []string // types of exported resources that differ
}

// resourceName is what tells resources apart.
type resourceName struct{ kind, title string }

func compareCatalogs(before storedCatalog, c inventory.Catalog) catalogDiff {
	d := catalogDiff{before: before}
	old := make(map[resourceName]storedResource, len(before.resources))
	for _, r := range before.resources {
		old[resourceName{r.Type, r.Title}] = r
	}
	for _, r := range c.Resources {
		next := stored(r)
		name := resourceName{r.Type, r.Title}
		if was, ok := old[name]; ok && sameResource(was, next) {
			delete(old, name)
			continue
		}
		d.added = append(d.added, next)
		d.noteExport(next)
	}
	for _, r := range old {
		d.gone = append(d.gone, r.id)
		d.noteExport(r)
	}
	d.compareEdges(before.edges, c.Edges)
	return d
}

// noteExport takes note of a resource that differs, or came or went.
func (d *catalogDiff) noteExport(r storedResource) {
	if r.Exported && !slices.Contains(d.exports, r.Type) {
		d.exports = append(d.exports, r.Type)
	}
}

func (d *catalogDiff) compareEdges(before map[inventory.Edge]int64, after []inventory.Edge) {
	kept := make(map[inventory.Edge]bool, len(after))
	for _, e := range after {
		kept[e] = true
		if _, ok := before[e]; !ok {
			d.edgesNew = append(d.edgesNew, e)
		}
	}
	for e, id := range before {
		if !kept[e] {
			d.edgesGone = append(d.edgesGone, id)
		}
	}
}

func stored(r inventory.Resource) storedResource {
	next := storedResource{Resource: r}
	if len(r.Tags) > 0 {
		tags, _ := json.Marshal(r.Tags) // strings always marshal
		next.tags = string(tags)
	}
	if len(r.Parameters) > 0 {
		sum := sha256.Sum256(r.Parameters)
		next.hash = sum[:]
	}
	return next
}

func sameResource(a, b storedResource) bool {
	return a.Exported == b.Exported && a.File == b.File && a.Line == b.Line && a.tags == b.tags && bytes.Equal(a.hash, b.hash)
}

// orderOf writes the resources' names in catalog order.
func orderOf(resources []inventory.Resource) []byte {
	names := make([][2]string, len(resources))
	for i, r := range resources {
		names[i] = [2]string{r.Type, r.Title}
	}
	text, _ := json.Marshal(names) // strings always marshal
	return text
}

func (s *Catalogs) putCatalog(ctx context.Context, q querier, c inventory.Catalog, d catalogDiff) error {
	now, produced := micros(c.CompiledAt), micros(c.ProducedAt)
	seen, newest := int64(0), int64(math.MaxInt64) // compiling is no sign of life
	if c.Received {
		seen, newest = produced, produced
	}
	node, err := one[int64](q.row(ctx, `INSERT INTO nodes (certname, environment, catalog_at, catalog_digest, created_at) VALUES ($1, $2, $3, $4, $3)
		ON CONFLICT (certname) DO UPDATE SET environment = excluded.environment, catalog_at = excluded.catalog_at,
		catalog_digest = excluded.catalog_digest, `+activate("$5")+` RETURNING id`, c.Certname, c.Environment, now, c.Digest, seen))
	if err != nil {
		return err
	}
	var count int64
	if d.before.seq > 0 {
		count, err = q.exec(ctx, `UPDATE catalogs SET environment = $1, digest = $2, version = $3, uuid = $4, transaction_uuid = $5,
			compiled_at = $6, seq = seq + $7, compilation = $8, produced_at = $9, producer = $10, job_id = $11, config_version = $12, code_id = $13,
			received = $14 WHERE node_id = $15 AND seq = $16 AND node_id = $17 AND compilation <= $8 AND produced_at <= $18`,
			c.Environment, c.Digest, c.Version, query.Clean(c.UUID), query.Clean(c.Transaction), now, bit(d.order != nil), c.Compilation, produced,
			query.Clean(c.Producer),
			query.Clean(c.JobID), query.Clean(c.ConfigVersion), query.Clean(c.CodeID), bit(c.Received), node, d.before.seq, d.before.node, newest)
	} else {
		count, err = q.exec(ctx, `INSERT INTO catalogs (environment, digest, version, uuid, transaction_uuid, compiled_at, compilation, produced_at,
			producer, job_id, config_version, code_id, received, seq, node_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14) ON CONFLICT DO NOTHING`,
			c.Environment, c.Digest, c.Version, query.Clean(c.UUID), query.Clean(c.Transaction), now, c.Compilation, produced,
			query.Clean(c.Producer), query.Clean(c.JobID), query.Clean(c.ConfigVersion), query.Clean(c.CodeID), bit(c.Received), node)
	}
	if err != nil || count == 0 {
		return cmpErr(err, errStale)
	}
	if err := s.putCollected(ctx, q, node, c.Collected); err != nil {
		return err
	}
	if err := endLosses(ctx, q, c.Certname, c.Digest); err != nil {
		return err
	}
	if d.order == nil {
		return nil
	}
	if len(d.exports) > 0 {
		if err := s.note(ctx, q, compile.ExportsChanged, c.Certname, d.exports); err != nil {
			return err
		}
	}
	return s.putRows(ctx, q, node, d)
}

var (
	parameterRow = []column{{"hash", blobs}, {"parameters", texts}}
	resourceRow  = []column{
		{"node_id", ints},
		{"type", texts},
		{"title", texts},
		{"exported", ints},
		{"file", texts},
		{"line", ints},
		{"tags", texts},
		{"parameters", blobs},
	}
	edgeRow = []column{{"node_id", ints}, {"source", texts}, {"target", texts}, {"relationship", texts}}
)

func (s *Catalogs) putRows(ctx context.Context, q querier, node int64, d catalogDiff) error {
	if _, err := q.exec(ctx, `INSERT INTO catalog_orders (node_id, resources) VALUES ($1, $2)
		ON CONFLICT (node_id) DO UPDATE SET resources = excluded.resources`, node, d.order); err != nil {
		return err
	}
	for _, id := range d.gone {
		if _, err := q.exec(ctx, "DELETE FROM resources WHERE id = $1 AND node_id = $2", id, node); err != nil {
			return err
		}
	}
	for _, id := range d.edgesGone {
		if _, err := q.exec(ctx, "DELETE FROM edges WHERE id = $1 AND node_id = $2", id, node); err != nil {
			return err
		}
	}
	if err := s.dialect.insert(ctx, q, "resource_parameters", parameterRow, "ON CONFLICT (hash) DO NOTHING", parameterRows(d.added)); err != nil {
		return err
	}
	rows := make([][]any, len(d.added))
	for i, r := range d.added {
		rows[i] = []any{node, query.Clean(r.Type), query.Clean(r.Title), bit(r.Exported), query.Clean(r.File), int64(r.Line), r.tags, r.hash}
	}
	if err := s.dialect.insert(ctx, q, "resources", resourceRow, "", rows); err != nil {
		return err
	}
	edges := make([][]any, len(d.edgesNew))
	for i, e := range d.edgesNew {
		edges[i] = []any{node, query.Clean(e.Source), query.Clean(e.Target), e.Relationship}
	}
	return s.dialect.insert(ctx, q, "edges", edgeRow, "", edges)
}

// parameterRows lists the parameters, each once and sorted by hash, so that two
// transactions cannot wait for each other.
func parameterRows(added []storedResource) [][]any {
	var rows [][]any
	sorted := slices.SortedFunc(slices.Values(added), func(a, b storedResource) int { return bytes.Compare(a.hash, b.hash) })
	for i, r := range sorted {
		if r.hash != nil && (i == 0 || !bytes.Equal(r.hash, sorted[i-1].hash)) {
			rows = append(rows, []any{r.hash, string(r.Parameters)})
		}
	}
	return rows
}

// Catalog implements inventory.CatalogStore.
func (s *Catalogs) Catalog(ctx context.Context, name fleet.Certname) (inventory.Catalog, error) {
	var c storedCatalog
	err := s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if c, err = s.catalogHead(ctx, q, name); err != nil {
			return err
		}
		if c.seq == 0 {
			return fault.New(fault.NotFound, "node %s has no catalog", name)
		}
		if err := s.catalogRows(ctx, q, &c); err != nil {
			return err
		}
		if c.Collected, err = s.collectedRows(ctx, q, c.node); err != nil {
			return err
		}
		return s.arrange(ctx, q, &c)
	})
	if err != nil {
		return inventory.Catalog{}, explain(err, "read the catalog of %s", name)
	}
	return c.Catalog, nil
}

// arrange puts resources in catalog order and edges in theirs.
func (s *Catalogs) arrange(ctx context.Context, q querier, c *storedCatalog) error {
	packed, err := one[[]byte](q.row(ctx, "SELECT resources FROM catalog_orders WHERE node_id = $1", c.node))
	if err != nil {
		return err
	}
	text, err := s.packer.unpack(packed)
	if err != nil {
		return err
	}
	var names [][2]string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	position := make(map[resourceName]int, len(names))
	for i, name := range names {
		position[resourceName{query.Clean(name[0]), query.Clean(name[1])}] = i
	}
	slices.SortFunc(c.resources, func(a, b storedResource) int {
		return cmp.Compare(position[resourceName{a.Type, a.Title}], position[resourceName{b.Type, b.Title}])
	})
	for _, r := range c.resources {
		if r.tags != "" {
			if err := json.Unmarshal([]byte(r.tags), &r.Tags); err != nil {
				return err
			}
		}
		c.Resources = append(c.Resources, r.Resource)
	}
	edges := make([]inventory.Edge, 0, len(c.edges))
	for e := range c.edges {
		edges = append(edges, e)
	}
	_, c.Edges = inventory.Distinct(nil, edges)
	return nil
}

// CatalogDigests implements inventory.CatalogStore. Finished compilations refer to
// catalogs too.
func (s *Catalogs) CatalogDigests(ctx context.Context) ([]fleet.Digest, error) {
	digests, err := collect(ctx, s.reads, one[fleet.Digest],
		"SELECT digest FROM catalogs WHERE received = 0 UNION SELECT catalog FROM compilations WHERE catalog <> '' ORDER BY 1")
	return digests, explain(err, "list catalog digests")
}
