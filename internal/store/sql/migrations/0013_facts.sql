-- contract: one server had the records then, and nobody ran beside it.
-- Facts that were accepted and are not applied yet: the newest set of each node.
CREATE TABLE fact_intake (
  certname    @text  PRIMARY KEY,
  environment @text  NOT NULL,
  digest      @text  NOT NULL,
  number      @int   NOT NULL,
  node_at     @int   NOT NULL,
  accepted_at @int   NOT NULL,
  bytes       @int   NOT NULL,
  document    @bytes NOT NULL
);

CREATE INDEX fact_intake_by_age ON fact_intake (accepted_at);

-- Of the newest submission of the node's agent.
ALTER TABLE factsets ADD COLUMN number @int NOT NULL DEFAULT 0;
