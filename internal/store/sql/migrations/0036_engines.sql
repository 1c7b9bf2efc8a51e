-- contract: one server had the records then, and nobody ran beside it.
-- The Puppet installation that compiles a version, by its name; empty: the server's default.
ALTER TABLE versions ADD COLUMN engine TEXT NOT NULL DEFAULT '';
