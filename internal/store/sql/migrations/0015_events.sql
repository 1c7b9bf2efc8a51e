-- contract: one server had the records then, and nobody ran beside it.
-- The stream of what happens in Puppet runs. Numbers are given by the one row of event_numbers, which every
-- transaction that stores events locks until it commits: so they become visible in order.
CREATE TABLE event_numbers (
  id   @int PRIMARY KEY,
  last @int NOT NULL
);

INSERT INTO event_numbers (id, last) VALUES (1, 0);

CREATE TABLE run_events (
  number      @int  NOT NULL PRIMARY KEY,
  node        @text NOT NULL,
  run         @text NOT NULL,
  job_id      @int  NOT NULL,
  environment @text NOT NULL,
  kind        @text NOT NULL,
  status      @text NOT NULL,
  type        @text NOT NULL,
  reported    @int  NOT NULL,
  stored_at   @int  NOT NULL,
  detail      @text NOT NULL
);

CREATE INDEX run_events_by_node ON run_events (node, number);

CREATE INDEX run_events_by_job ON run_events (job_id, number) WHERE job_id > 0;

-- What is known of each run: up to where its node's events are stored, and whether they were compared with its report.
CREATE TABLE event_runs (
  node        @text NOT NULL,
  run         @text NOT NULL,
  job_id      @int  NOT NULL DEFAULT 0,
  environment @text NOT NULL DEFAULT '',
  first       @int  NOT NULL DEFAULT 0,
  last        @int  NOT NULL DEFAULT 0,
  began_at    @int  NOT NULL DEFAULT 0,
  ended_at    @int  NOT NULL DEFAULT 0,
  status      @text NOT NULL DEFAULT '',
  missing     @int  NOT NULL DEFAULT 0,
  report      @text NOT NULL DEFAULT '',
  reported_at @int  NOT NULL DEFAULT 0,
  settled     @int  NOT NULL DEFAULT 0,
  touched_at  @int  NOT NULL,
  PRIMARY KEY (node, run)
) @clustered;

CREATE INDEX event_runs_unsettled ON event_runs (reported_at) WHERE settled = 0 AND report <> '';

CREATE INDEX event_runs_by_touch ON event_runs (touched_at);
