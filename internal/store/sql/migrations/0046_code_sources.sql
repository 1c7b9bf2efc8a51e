-- contract: one server had the records then, and nobody ran beside it.
-- Repositories whose branches are environments.
CREATE TABLE code_sources (
  name     @text  NOT NULL PRIMARY KEY,
  document @text  NOT NULL, -- settings; nothing secret
  sealed   @bytes NOT NULL  -- key, address with its password, secret of webhooks
);

-- The branches, and the newest deploy of each.
CREATE TABLE code_branches (
  environment @text NOT NULL PRIMARY KEY,
  source      @text NOT NULL REFERENCES code_sources (name) ON DELETE CASCADE,
  document    @text NOT NULL
);
CREATE INDEX code_branches_source ON code_branches (source);
