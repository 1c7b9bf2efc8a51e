-- expand: older programs do not look at it, and what they write of facts comes to the index by triggers.
-- Facts that questions often compare with a text have an index, path by path; see decision 51.
CREATE TABLE indexed_paths (
  path_id  @int NOT NULL PRIMARY KEY,
  asked_at @int NOT NULL
);

-- The texts that nodes have there. Triggers keep them as they are in the table of facts.
CREATE TABLE indexed_facts (
  node_id @int NOT NULL,
  path_id @int NOT NULL,
  value   @text NOT NULL, -- the first 64 characters of a string
  PRIMARY KEY (node_id, path_id)
) @clustered;

CREATE INDEX indexed_facts_by_value ON indexed_facts (path_id, value, node_id);

@fact_triggers;
