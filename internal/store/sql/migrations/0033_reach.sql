-- contract: one server had the records then, and nobody ran beside it.
-- Which nodes the inventory may tell a preview's code of: a condition on nodes; empty: all. What is compiled with one answers nobody with another one.
ALTER TABLE previews ADD COLUMN reach @text NOT NULL DEFAULT '';

ALTER TABLE compilations ADD COLUMN reach @text NOT NULL DEFAULT '';

ALTER TABLE compilations ADD COLUMN reach_digest @text NOT NULL DEFAULT '';

DROP INDEX compilations_wanted_once;

CREATE UNIQUE INDEX compilations_wanted_once ON compilations (certname, environment, version, reach_digest) WHERE state = 'wanted';
