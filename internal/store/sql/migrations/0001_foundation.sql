-- expand: there was nothing before.
-- Words with @ differ between databases; see sqlite.go and postgres.go.
-- Times are microseconds since 1970 (0: none). Flags are 0 or 1.

CREATE TABLE nodes (
  id                @id,
  certname          @text NOT NULL UNIQUE,
  environment       @text NOT NULL,
  facts_at          @int  NOT NULL DEFAULT 0,
  catalog_at        @int  NOT NULL DEFAULT 0,
  catalog_digest    @text NOT NULL DEFAULT '',
  report_at         @int  NOT NULL DEFAULT 0,
  latest_report     @text NOT NULL DEFAULT '',
  latest_status     @text NOT NULL DEFAULT '',
  latest_noop       @int  NOT NULL DEFAULT 0,
  latest_corrective @int  NOT NULL DEFAULT 0,
  created_at        @int  NOT NULL
);

-- The newest facts of a node: a summary, the document, and a row for each leaf.
CREATE TABLE factsets (
  node_id     @int  PRIMARY KEY,
  environment @text NOT NULL,
  digest      @text NOT NULL,
  seq         @int  NOT NULL,
  produced_at @int  NOT NULL,
  received_at @int  NOT NULL
);

CREATE TABLE fact_documents (
  node_id  @int   PRIMARY KEY,
  document @bytes NOT NULL
);

CREATE TABLE fact_paths (
  id   @id,
  path @text NOT NULL UNIQUE,
  name @text NOT NULL
);

CREATE TABLE facts (
  node_id @int  NOT NULL,
  path_id @int  NOT NULL,
  kind    @int  NOT NULL,
  value   @text NOT NULL,
  number  @float,
  PRIMARY KEY (node_id, path_id)
) @clustered;

-- The newest catalog of a node. seq tells its states apart.
CREATE TABLE catalogs (
  node_id          @int  PRIMARY KEY,
  environment      @text NOT NULL,
  digest           @text NOT NULL,
  version          @text NOT NULL,
  uuid             @text NOT NULL,
  transaction_uuid @text NOT NULL,
  compiled_at      @int  NOT NULL,
  compilation      @int  NOT NULL,
  seq              @int  NOT NULL
);

CREATE INDEX catalogs_by_digest ON catalogs (digest);

-- The order of resources in a catalog, so that one more in front moves no rows.
CREATE TABLE catalog_orders (
  node_id   @int   PRIMARY KEY,
  resources @bytes NOT NULL
);

CREATE TABLE resource_parameters (
  hash       @bytes NOT NULL PRIMARY KEY,
  parameters @text  NOT NULL
) @clustered;

CREATE TABLE resources (
  id         @id,
  node_id    @int  NOT NULL,
  type       @text NOT NULL,
  title      @text NOT NULL,
  exported   @int  NOT NULL,
  file       @text NOT NULL,
  line       @int  NOT NULL,
  tags       @text NOT NULL,
  parameters @bytes REFERENCES resource_parameters (hash)
);

CREATE INDEX resources_by_node ON resources (node_id);

CREATE INDEX resources_by_parameters ON resources (parameters);

CREATE TABLE edges (
  id           @id,
  node_id      @int  NOT NULL,
  source       @text NOT NULL,
  target       @text NOT NULL,
  relationship @text NOT NULL
);

CREATE INDEX edges_by_node ON edges (node_id);

-- Reports: a summary, the bulk as one document, and a row for each event.
CREATE TABLE reports (
  id               @id,
  digest           @text NOT NULL UNIQUE,
  node_id          @int  NOT NULL,
  environment      @text NOT NULL,
  status           @text NOT NULL,
  noop             @int  NOT NULL,
  noop_pending     @int  NOT NULL,
  corrective       @int  NOT NULL,
  completed        @int  NOT NULL,
  puppet_version   @text NOT NULL,
  report_format    @int  NOT NULL,
  config_version   @text NOT NULL,
  transaction_uuid @text NOT NULL,
  catalog_uuid     @text NOT NULL,
  code_id          @text NOT NULL,
  job_id           @text NOT NULL,
  cached_catalog   @text NOT NULL,
  server           @text NOT NULL,
  started_at       @int  NOT NULL,
  ended_at         @int  NOT NULL,
  received_at      @int  NOT NULL,
  resources        @int  NOT NULL,
  changed          @int  NOT NULL,
  failed           @int  NOT NULL,
  skipped          @int  NOT NULL,
  unchanged        @int  NOT NULL,
  noops            @int  NOT NULL,
  correctives      @int  NOT NULL
);

CREATE INDEX reports_by_time ON reports (received_at, digest);

CREATE INDEX reports_by_node ON reports (node_id, received_at, digest);

CREATE TABLE report_documents (
  report_id @int   PRIMARY KEY,
  document  @bytes NOT NULL
);

CREATE TABLE events (
  report_id        @int  NOT NULL,
  position         @int  NOT NULL,
  type             @text NOT NULL,
  title            @text NOT NULL,
  property         @text NOT NULL,
  name             @text NOT NULL,
  status           @text NOT NULL,
  happened_at      @int  NOT NULL,
  corrective       @int  NOT NULL,
  message          @text NOT NULL,
  previous         @text NOT NULL,
  desired          @text NOT NULL,
  file             @text NOT NULL,
  line             @int  NOT NULL,
  containment_path @text NOT NULL,
  PRIMARY KEY (report_id, position)
) @clustered;

-- The queue of compilations, and its history.
CREATE TABLE compilations (
  id               @id,
  certname         @text NOT NULL,
  environment      @text NOT NULL,
  version          @text NOT NULL,
  facts_seq        @int  NOT NULL,
  transaction_uuid @text NOT NULL,
  trusted          @text NOT NULL,
  priority         @int  NOT NULL,
  state            @text NOT NULL,
  wanted_at        @int  NOT NULL,
  leased_by        @text NOT NULL DEFAULT '',
  leased_until     @int  NOT NULL DEFAULT 0,
  attempts         @int  NOT NULL DEFAULT 0,
  finished_at      @int  NOT NULL DEFAULT 0,
  catalog          @text NOT NULL DEFAULT '',
  uuid             @text NOT NULL DEFAULT '',
  error            @text NOT NULL DEFAULT '',
  wall             @int  NOT NULL DEFAULT 0,
  cpu              @int  NOT NULL DEFAULT 0,
  peak_bytes       @int  NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX compilations_wanted_once ON compilations (certname, environment, version) WHERE state = 'wanted';

CREATE INDEX compilations_by_key ON compilations (certname, environment, version, id);

CREATE INDEX compilations_to_lease ON compilations (priority, wanted_at, id) WHERE state = 'wanted';

CREATE INDEX compilations_leased ON compilations (leased_until) WHERE state = 'leased';

CREATE INDEX compilations_finished ON compilations (finished_at) WHERE state IN ('done', 'failed');

-- Environments and their versions; the one saved last is the current one.
CREATE TABLE versions (
  seq         @id,
  environment @text NOT NULL,
  version     @text NOT NULL,
  git_commit  @text NOT NULL,
  origin      @text NOT NULL,
  actor       @text NOT NULL,
  files       @int  NOT NULL,
  bytes       @int  NOT NULL,
  deployed_at @int  NOT NULL,
  UNIQUE (environment, version)
);

CREATE INDEX versions_newest ON versions (environment, seq);

-- Certificates. Serial numbers are 64 hexadecimal digits, so that text order is
-- the order of numbers.
CREATE TABLE requests (
  certname    @text  PRIMARY KEY,
  pem         @bytes NOT NULL,
  received_at @int   NOT NULL
);

CREATE TABLE certificates (
  serial     @text  PRIMARY KEY,
  certname   @text  NOT NULL,
  pem        @bytes NOT NULL,
  not_before @int   NOT NULL,
  not_after  @int   NOT NULL,
  issued_at  @int   NOT NULL,
  revoked_at @int   NOT NULL,
  current    @int   NOT NULL
);

CREATE INDEX certificates_by_name ON certificates (certname);

CREATE UNIQUE INDEX certificates_current ON certificates (certname) WHERE current = 1;

CREATE TABLE join_tokens (
  hash       @text PRIMARY KEY,
  certname   @text NOT NULL,
  expires_at @int  NOT NULL
);

CREATE TABLE counters (
  name  @text PRIMARY KEY,
  value @text NOT NULL
);

INSERT INTO counters (name, value) VALUES ('serial', '0'), ('crl', '0');

-- Contents that agents backed up. A path may be too long for an index, its digest
-- is not.
CREATE TABLE backups (
  id          @id,
  algorithm   @text NOT NULL,
  sum         @text NOT NULL,
  node        @text NOT NULL,
  path_digest @text NOT NULL,
  path        @text NOT NULL,
  blob        @text NOT NULL,
  size        @int  NOT NULL,
  saved_at    @int  NOT NULL,
  UNIQUE (algorithm, sum, node, path_digest)
);

CREATE INDEX backups_by_node ON backups (node, saved_at);

CREATE INDEX backups_by_time ON backups (saved_at);

CREATE TABLE access_tokens (
  label      @text PRIMARY KEY,
  hash       @text NOT NULL UNIQUE,
  admin      @int  NOT NULL,
  created_at @int  NOT NULL,
  expires_at @int  NOT NULL
);
