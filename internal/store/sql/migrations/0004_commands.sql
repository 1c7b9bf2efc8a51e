-- contract: one server had the records then, and nobody ran beside it.
-- What PuppetDB's commands tell besides facts, catalogs and reports: through which
-- server they came and when by its clock (produced_at), packages, catalog inputs,
-- and whether a node's facts expire.

-- Until now produced_at was the time by the node's own clock.
ALTER TABLE factsets ADD COLUMN node_at @int NOT NULL DEFAULT 0;

ALTER TABLE factsets ADD COLUMN producer @text NOT NULL DEFAULT '';

ALTER TABLE factsets ADD COLUMN packages @text NOT NULL DEFAULT '';

UPDATE factsets SET node_at = produced_at, produced_at = received_at;

-- A received catalog was compiled by another server: there are rows, but no
-- document, and version is empty. compilation stays the newest one of this server.
ALTER TABLE catalogs ADD COLUMN produced_at @int NOT NULL DEFAULT 0;

ALTER TABLE catalogs ADD COLUMN producer @text NOT NULL DEFAULT '';

ALTER TABLE catalogs ADD COLUMN job_id @text NOT NULL DEFAULT '';

ALTER TABLE catalogs ADD COLUMN config_version @text NOT NULL DEFAULT '';

ALTER TABLE catalogs ADD COLUMN code_id @text NOT NULL DEFAULT '';

ALTER TABLE catalogs ADD COLUMN received @int NOT NULL DEFAULT 0;

UPDATE catalogs SET produced_at = compiled_at, config_version = version, code_id = version;

ALTER TABLE reports ADD COLUMN produced_at @int NOT NULL DEFAULT 0;

ALTER TABLE reports ADD COLUMN producer @text NOT NULL DEFAULT '';

ALTER TABLE reports ADD COLUMN kind @text NOT NULL DEFAULT 'agent';

UPDATE reports SET produced_at = received_at, producer = server;

-- When the latest report was produced, and what configure_expiration said.
ALTER TABLE nodes ADD COLUMN report_produced_at @int NOT NULL DEFAULT 0;

ALTER TABLE nodes ADD COLUMN keeps @int NOT NULL DEFAULT 0;

ALTER TABLE nodes ADD COLUMN keeps_at @int NOT NULL DEFAULT 0;

UPDATE nodes SET report_produced_at = report_at;

CREATE TABLE packages (
  id       @id,
  name     @text NOT NULL,
  version  @text NOT NULL,
  provider @text NOT NULL,
  UNIQUE (name, version, provider)
);

CREATE TABLE node_packages (
  node_id    @int NOT NULL,
  package_id @int NOT NULL,
  PRIMARY KEY (node_id, package_id)
) @clustered;

CREATE INDEX node_packages_by_package ON node_packages (package_id);

CREATE TABLE catalog_inputs (
  node_id     @int  PRIMARY KEY,
  uuid        @text NOT NULL,
  produced_at @int  NOT NULL,
  inputs      @text NOT NULL
);
