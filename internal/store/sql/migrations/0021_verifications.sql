-- contract: one server had the records then, and nobody ran beside it.
-- Catalogs that were compared with what plain Puppet gives for the same order.
CREATE TABLE verifications (
  id          @id,
  certname    @text NOT NULL,
  environment @text NOT NULL,
  version     @text NOT NULL,
  catalog     @text NOT NULL,
  inputs      @text NOT NULL,
  outcome     @text NOT NULL,
  cause       @text NOT NULL,
  reason      @text NOT NULL,
  differs     @text NOT NULL,
  count       @int  NOT NULL,
  wall        @int  NOT NULL,
  verified_at @int  NOT NULL
);

CREATE INDEX verifications_by_version ON verifications (environment, version, outcome);

CREATE INDEX verifications_by_node ON verifications (certname);

-- What the inventory answered while catalogs were compiled, by the digests that stand with the questions in what compilations read.
CREATE TABLE recorded_answers (
  digest   @text  PRIMARY KEY,
  used_at  @int   NOT NULL,
  document @bytes NOT NULL
);
