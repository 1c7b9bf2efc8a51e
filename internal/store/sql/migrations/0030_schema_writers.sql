-- contract: one server had the records then, and nobody ran beside it.
-- Which version of the program first had each state of the schema. An older one that finds
-- a newer state names it.
CREATE TABLE schema_writers (
  schema  @int  PRIMARY KEY,
  version @text NOT NULL,
  at      @int  NOT NULL
);
