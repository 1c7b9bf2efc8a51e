-- contract: one server had the records then, and nobody ran beside it.
-- What compilations read. The document of a row names groups of source files, which
-- many rows share.
CREATE TABLE compilation_inputs (
  compilation @int   PRIMARY KEY,
  document    @bytes NOT NULL
);

CREATE TABLE input_groups (
  digest   @text  PRIMARY KEY,
  used_at  @int   NOT NULL,
  document @bytes NOT NULL
);

-- A compilation that only checks the catalog of another one, which was used again.
ALTER TABLE compilations ADD COLUMN checks @int NOT NULL DEFAULT 0;

CREATE TABLE reuse_stops (
  certname    @text NOT NULL,
  environment @text NOT NULL,
  version     @text NOT NULL,
  stopped_at  @int  NOT NULL,
  reused      @text NOT NULL,
  fresh       @text NOT NULL,
  differs     @text NOT NULL,
  inputs      @text NOT NULL,
  PRIMARY KEY (certname, environment, version)
);
