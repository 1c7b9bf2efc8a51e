-- contract: one server had the records then, and nobody ran beside it.
-- Catalogs that lost resources: held from their nodes, or given with a warning. An open one (ended_at 0) says how its
-- node stands now; ended ones say what runs of their time had.
CREATE TABLE catalog_losses (
  id               @id,
  certname         @text NOT NULL,
  ruling           @text NOT NULL,
  catalog          @text NOT NULL,
  environment      @text NOT NULL,
  version          @text NOT NULL,
  uuid             @text NOT NULL,
  compilation      @int  NOT NULL,
  compiled_at      @int  NOT NULL,
  kept             @text NOT NULL,
  kept_environment @text NOT NULL,
  kept_version     @text NOT NULL,
  kept_uuid        @text NOT NULL,
  kept_compilation @int  NOT NULL,
  kept_compiled_at @int  NOT NULL,
  resources_before @int  NOT NULL,
  resources_after  @int  NOT NULL,
  noted_at         @int  NOT NULL,
  ended_at         @int  NOT NULL DEFAULT 0,
  ended_by         @text NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX catalog_losses_open ON catalog_losses (certname) WHERE ended_at = 0;

CREATE INDEX catalog_losses_by_node ON catalog_losses (certname, noted_at);

-- What people let go: a catalog for a node (its name), or whatever a version gives (its digest, no catalog).
CREATE TABLE catalog_lets (
  kind    @text NOT NULL,
  name    @text NOT NULL,
  catalog @text NOT NULL,
  let_at  @int  NOT NULL,
  let_by  @text NOT NULL,
  PRIMARY KEY (kind, name, catalog)
) @clustered;
