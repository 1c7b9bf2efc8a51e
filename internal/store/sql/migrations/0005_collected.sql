-- contract: one server had the records then, and nobody ran beside it.
-- Which resources of a node's newest catalog other nodes exported. The exporter is
-- kept by its name: it may be forgotten while its resources are still in use.

CREATE TABLE collected (
  node_id  @int  NOT NULL,
  type     @text NOT NULL,
  title    @text NOT NULL,
  exporter @text NOT NULL,
  PRIMARY KEY (node_id, type, title)
) @clustered;

CREATE INDEX collected_by_exporter ON collected (exporter);

-- What collectors look for: few resources are exported.
CREATE INDEX resources_exported ON resources (type, node_id) WHERE exported = 1;
