-- contract: one server had the records then, and nobody ran beside it.
-- What nodes may have. A mode is set for a node (its name) or a group (its id).
CREATE TABLE delivery_modes (
  kind   @text NOT NULL,
  name   @text NOT NULL,
  mode   @text NOT NULL,
  set_at @int  NOT NULL,
  set_by @text NOT NULL,
  PRIMARY KEY (kind, name)
) @clustered;

-- The mode that is in force for a node, and its newest generation (0: none). A node
-- without a row is in live mode.
CREATE TABLE deliveries (
  certname   @text PRIMARY KEY,
  mode       @text NOT NULL,
  head       @int  NOT NULL,
  pinned_at  @int  NOT NULL DEFAULT 0,
  pinned_by  @text NOT NULL DEFAULT '',
  pinned_why @text NOT NULL DEFAULT ''
);

CREATE TABLE generations (
  certname    @text NOT NULL,
  number      @int  NOT NULL,
  catalog     @text NOT NULL,
  environment @text NOT NULL,
  version     @text NOT NULL,
  uuid        @text NOT NULL,
  compilation @int  NOT NULL,
  compiled_at @int  NOT NULL,
  release_id  @int  NOT NULL,
  released_at @int  NOT NULL,
  released_by @text NOT NULL,
  why         @text NOT NULL,
  promoted    @int  NOT NULL,
  PRIMARY KEY (certname, number)
) @clustered;

CREATE INDEX generations_by_catalog ON generations (catalog);

CREATE INDEX generations_by_version ON generations (environment, version);

CREATE INDEX generations_unpromoted ON generations (certname, number) WHERE promoted = 0;
