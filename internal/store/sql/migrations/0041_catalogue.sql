-- contract: one server had the records then, and nobody ran beside it.
-- What each node's agent says of itself; a node whose agent tells nothing is not here.
CREATE TABLE agents (
  certname @text NOT NULL PRIMARY KEY,
  modules  @text NOT NULL, -- digest of its set
  version  @text NOT NULL,
  os       @text NOT NULL,
  arch     @text NOT NULL,
  told_at  @int  NOT NULL  -- since when it says so
);
CREATE INDEX agents_modules ON agents (modules);

-- Sets of modules, whose lists are known.
CREATE TABLE module_sets (
  digest @text NOT NULL PRIMARY KEY
);
CREATE TABLE set_modules (
  set_digest @text NOT NULL,
  name       @text NOT NULL,
  provider   @text NOT NULL,
  version    @text NOT NULL,
  digest     @text NOT NULL, -- of its metadata; empty: it cannot be used
  problem    @text NOT NULL, -- empty: there is none
  PRIMARY KEY (set_digest, name, provider)
);
CREATE INDEX set_modules_name ON set_modules (name);

CREATE TABLE module_descriptions (
  digest      @text NOT NULL PRIMARY KEY,
  name        @text NOT NULL,
  version     @text NOT NULL,
  provider    @text NOT NULL,
  description @text NOT NULL, -- in short
  known_at    @int  NOT NULL,
  bytes       @int  NOT NULL, -- of the metadata
  metadata    @bytes NOT NULL  -- packed
);
