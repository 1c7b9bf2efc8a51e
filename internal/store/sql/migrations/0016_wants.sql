-- contract: one server had the records then, and nobody ran beside it.
-- The catalog of a node in an environment from which others are judged: the one that
-- gave its newest catalog, and the newest staged one. Inputs is the compilation whose
-- inputs it has; files that it read are the same up to version.
CREATE TABLE standings (
  certname    @text NOT NULL,
  environment @text NOT NULL,
  staged      @int  NOT NULL,
  compilation @int  NOT NULL,
  inputs      @int  NOT NULL,
  version     @text NOT NULL,
  volatile    @int  NOT NULL,
  compiled_at @int  NOT NULL,
  tried_at    @int  NOT NULL DEFAULT 0,
  PRIMARY KEY (environment, certname, staged)
) @clustered;

CREATE INDEX standings_by_inputs ON standings (inputs);

CREATE INDEX standings_by_age ON standings (compiled_at) WHERE staged = 0;

-- A flag for catalogs that were there before would need their documents: what is
-- volatile is known from the next compilation on.
INSERT INTO standings (certname, environment, staged, compilation, inputs, version, volatile, compiled_at)
SELECT c.certname, c.environment, 0, c.id, c.id, c.version, 0, c.finished_at
FROM compilations c JOIN nodes n ON n.certname = c.certname JOIN catalogs k ON k.node_id = n.id AND k.compilation = c.id AND k.received = 0
WHERE c.state = 'done' AND EXISTS (SELECT 1 FROM compilation_inputs i WHERE i.compilation = c.id);

CREATE INDEX nodes_by_environment ON nodes (environment, certname);

-- What changed of nodes and was not considered yet.
CREATE TABLE changes (
  kind     @text NOT NULL,
  certname @text NOT NULL,
  details  @text NOT NULL,
  count    @int  NOT NULL,
  noted_at @int  NOT NULL,
  PRIMARY KEY (kind, certname)
) @clustered;

CREATE INDEX changes_by_time ON changes (noted_at);

-- How far the version of each environment, and the groups (''), were considered.
CREATE TABLE marks (
  environment @text PRIMARY KEY,
  version     @text NOT NULL,
  upto        @text NOT NULL,
  done        @int  NOT NULL,
  nodes       @int  NOT NULL,
  touched     @int  NOT NULL,
  began_at    @int  NOT NULL,
  known_for   @int  NOT NULL
);

-- Nodes that are compiled because of what others export.
CREATE TABLE chains (
  certname    @text NOT NULL,
  environment @text NOT NULL,
  rounds      @int  NOT NULL,
  because     @text NOT NULL,
  stopped_at  @int  NOT NULL,
  PRIMARY KEY (certname, environment)
) @clustered;

-- What failed in a version.
CREATE INDEX compilations_failed_of ON compilations (environment, version, certname, id) WHERE state = 'failed';
