-- contract: one server had the records then, and nobody ran beside it.
-- The last connection of each node's agent; a node that is not here never had one.
CREATE TABLE attendances (
  certname @text NOT NULL PRIMARY KEY,
  agent    @text NOT NULL, -- how it called itself
  since    @int  NOT NULL,
  until    @int  NOT NULL  -- 0: it is there
);
