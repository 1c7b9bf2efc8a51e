-- contract: one server had the records then, and nobody ran beside it.
-- A staged compilation's catalog does not become its node's newest. One that could not
-- be tried rests until a time, with what was wrong. A failed one remembers of which
-- order, so that the same is not tried again at once. Logs are JSON.
ALTER TABLE compilations ADD COLUMN staged @int NOT NULL DEFAULT 0;

ALTER TABLE compilations ADD COLUMN rests_until @int NOT NULL DEFAULT 0;

ALTER TABLE compilations ADD COLUMN trouble @text NOT NULL DEFAULT '';

ALTER TABLE compilations ADD COLUMN order_digest @text NOT NULL DEFAULT '';

ALTER TABLE compilations ADD COLUMN logs @text NOT NULL DEFAULT '';

-- Rows are leased from lanes: a priority and an environment.
DROP INDEX compilations_to_lease;

CREATE INDEX compilations_lanes ON compilations (priority, environment, wanted_at, id) WHERE state = 'wanted';

CREATE INDEX compilations_failed ON compilations (id) WHERE state = 'failed';

-- Whose turn it was last: the environment with the smallest number is next.
CREATE TABLE compile_turns (
  environment @text PRIMARY KEY,
  turn        @int  NOT NULL
);

-- What an operator stopped; an empty environment stands for all.
CREATE TABLE compile_pauses (
  environment @text PRIMARY KEY,
  paused_by   @text NOT NULL,
  reason      @text NOT NULL,
  paused_at   @int  NOT NULL
);
