-- contract: one server had the records then, and nobody ran beside it.
-- What queries need: whether a node is deactivated or has expired (0: not), and
-- the paths of a fact.

ALTER TABLE nodes ADD COLUMN deactivated_at @int NOT NULL DEFAULT 0;

ALTER TABLE nodes ADD COLUMN expired_at @int NOT NULL DEFAULT 0;

CREATE INDEX fact_paths_by_name ON fact_paths (name);
