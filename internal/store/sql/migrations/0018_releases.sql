-- contract: one server had the records then, and nobody ran beside it.
-- Catalogs that are handed to nodes in waves.
CREATE TABLE releases (
  id          @id,
  kind        @text NOT NULL,
  preview_id  @int  NOT NULL,
  of_release  @int  NOT NULL,
  environment @text NOT NULL,
  version     @text NOT NULL,
  description @text NOT NULL,
  author      @text NOT NULL,
  author_kind @text NOT NULL,
  options     @text NOT NULL,
  state       @text NOT NULL,
  hold        @text NOT NULL,
  held_until  @int  NOT NULL,
  reason      @text NOT NULL,
  killed      @int  NOT NULL,
  wave        @int  NOT NULL,
  waves       @text NOT NULL,
  needs       @text NOT NULL,
  digest      @text NOT NULL,
  counts      @text NOT NULL,
  revision    @int  NOT NULL,
  created_at  @int  NOT NULL,
  started_at  @int  NOT NULL,
  ended_at    @int  NOT NULL
);

CREATE INDEX releases_open ON releases (id) WHERE ended_at = 0;

CREATE TABLE release_targets (
  release_id  @int  NOT NULL REFERENCES releases (id),
  number      @int  NOT NULL,
  node        @text NOT NULL,
  wave        @int  NOT NULL,
  round       @int  NOT NULL,
  base        @text NOT NULL,
  catalog     @text NOT NULL,
  environment @text NOT NULL,
  version     @text NOT NULL,
  uuid        @text NOT NULL,
  compilation @int  NOT NULL,
  compiled_at @int  NOT NULL,
  state       @text NOT NULL,
  reason      @text NOT NULL,
  generation  @int  NOT NULL,
  report      @text NOT NULL,
  run_ended   @int  NOT NULL,
  run_changed @int  NOT NULL,
  revision    @int  NOT NULL,
  PRIMARY KEY (release_id, number)
) @clustered;

CREATE INDEX release_targets_by_change ON release_targets (release_id, revision);

CREATE INDEX release_targets_by_compilation ON release_targets (compilation) WHERE compilation > 0;

CREATE TABLE release_entries (
  id         @id,
  release_id @int  NOT NULL REFERENCES releases (id),
  noted_at   @int  NOT NULL,
  who        @text NOT NULL,
  text       @text NOT NULL
);

CREATE INDEX release_entries_by_release ON release_entries (release_id, id);

CREATE TABLE release_approvals (
  release_id  @int  NOT NULL REFERENCES releases (id),
  role        @text NOT NULL,
  who         @text NOT NULL,
  text        @text NOT NULL,
  digest      @text NOT NULL,
  approved_at @int  NOT NULL,
  PRIMARY KEY (release_id, role, who)
);

CREATE INDEX generations_by_release ON generations (release_id, certname) WHERE release_id > 0;

CREATE INDEX reports_by_transaction ON reports (transaction_uuid) WHERE transaction_uuid <> '';

-- A job that is ordered again under its key is the same job.
ALTER TABLE jobs ADD COLUMN order_key @text NOT NULL DEFAULT '';

CREATE UNIQUE INDEX jobs_by_key ON jobs (order_key) WHERE order_key <> '';
