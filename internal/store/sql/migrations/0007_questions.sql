-- contract: one server had the records then, and nobody ran beside it.
-- What people ask most, found without reading everything.

-- The few nodes that answers leave out.
CREATE INDEX nodes_inactive ON nodes (id) WHERE deactivated_at <> 0 OR expired_at <> 0;

-- Who has a class, a file, an exported resource of a type.
CREATE INDEX resources_by_name ON resources (type, title, node_id);

-- Reports by the time at which they ended, and how many there are of each status.
CREATE INDEX reports_by_end ON reports (ended_at, status, node_id);

-- Events that are not plain changes are few, and asked for most.
CREATE INDEX events_unusual ON events (status, report_id) WHERE status <> 'success';

CREATE INDEX events_by_name ON events (title, type);

-- Which kinds of value a path has, each with a node where it was seen, so that
-- paths can be listed without reading all facts.
CREATE TABLE fact_kinds (
  path_id @int NOT NULL,
  kind    @int NOT NULL,
  node_id @int NOT NULL,
  PRIMARY KEY (path_id, kind)
) @clustered;

INSERT INTO fact_kinds (path_id, kind, node_id) SELECT path_id, kind, min(node_id) FROM facts GROUP BY path_id, kind;
