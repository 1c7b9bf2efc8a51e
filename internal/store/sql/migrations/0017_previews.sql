-- contract: one server had the records then, and nobody ran beside it.
-- Versions that were stored to be looked at; they are nobody's current version.
CREATE TABLE staged_versions (
  environment @text NOT NULL,
  version     @text NOT NULL,
  git_commit  @text NOT NULL,
  origin      @text NOT NULL,
  actor       @text NOT NULL,
  files       @int  NOT NULL,
  bytes       @int  NOT NULL,
  staged_at   @int  NOT NULL,
  PRIMARY KEY (environment, version)
);

-- What versions would change. Documents and lists of nodes are compressed.
CREATE TABLE previews (
  id          @id,
  environment @text NOT NULL,
  version     @text NOT NULL,
  git_commit  @text NOT NULL,
  description @text NOT NULL,
  targets     @text NOT NULL,
  author      @text NOT NULL,
  author_kind @text NOT NULL,
  state       @text NOT NULL,
  reason      @text NOT NULL,
  counts      @text NOT NULL,
  unseen      @text NOT NULL,
  created_at  @int  NOT NULL,
  ended_at    @int  NOT NULL
);

CREATE INDEX previews_open ON previews (id) WHERE state = 'compiling';

CREATE TABLE preview_shares (
  preview_id  @int  NOT NULL REFERENCES previews (id),
  number      @int  NOT NULL,
  node        @text NOT NULL,
  state       @text NOT NULL,
  compilation @int  NOT NULL,
  fresh       @text NOT NULL,
  base        @text NOT NULL,
  reused      @int  NOT NULL,
  failure     @text NOT NULL,
  volatile    @text NOT NULL,
  PRIMARY KEY (preview_id, number)
) @clustered;

CREATE INDEX preview_shares_by_compilation ON preview_shares (compilation) WHERE compilation > 0;

CREATE TABLE preview_groups (
  preview_id @int   NOT NULL REFERENCES previews (id),
  place      @int   NOT NULL,
  key        @text  NOT NULL,
  document   @bytes NOT NULL,
  nodes      @bytes NOT NULL,
  PRIMARY KEY (preview_id, place)
);

CREATE INDEX preview_groups_by_key ON preview_groups (preview_id, key);

CREATE TABLE preview_remarks (
  id         @id,
  preview_id @int  NOT NULL REFERENCES previews (id),
  change_key @text NOT NULL,
  kind       @text NOT NULL,
  text       @text NOT NULL,
  author     @text NOT NULL,
  said_at    @int  NOT NULL
);

CREATE INDEX preview_remarks_by_preview ON preview_remarks (preview_id, id);
