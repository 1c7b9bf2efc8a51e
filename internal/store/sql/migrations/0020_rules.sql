-- contract: one server had the records then, and nobody ran beside it.
-- Rules that people set: noise of previews, policies, freezes. Every version stays; the newest holds, unless it
-- says that the rule was removed.
CREATE TABLE rule_versions (
  id         @id,
  kind       @text NOT NULL,
  name       @text NOT NULL,
  version    @int  NOT NULL,
  removed    @int  NOT NULL,
  document   @text NOT NULL,
  author     @text NOT NULL,
  changed_at @int  NOT NULL
);

CREATE UNIQUE INDEX rule_versions_by_name ON rule_versions (kind, name, version);
