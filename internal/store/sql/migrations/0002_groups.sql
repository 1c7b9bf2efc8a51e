-- contract: one server had the records then, and nobody ran beside it.
-- Classification groups. The document is the group as JSON; what is beside it is
-- for people who look, and for the revision check.
CREATE TABLE groups (
  id         @text PRIMARY KEY,
  name       @text NOT NULL,
  parent     @text NOT NULL,
  revision   @int  NOT NULL,
  changed_at @int  NOT NULL,
  changed_by @text NOT NULL,
  document   @bytes NOT NULL
);

INSERT INTO counters (name, value) VALUES ('groups', '1');
