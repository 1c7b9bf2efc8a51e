-- contract: one server had the records then, and nobody ran beside it.
-- What clients of the orchestrator ask of jobs: their order by environment, whose plan ordered them, and events that keep their
-- numbers: with which change a run began, and a job began to stop.
ALTER TABLE jobs ADD COLUMN environment @text NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN plan        @int  NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN stopping_at @int  NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN stop_change @int  NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_plan ON jobs (plan) WHERE plan > 0;
ALTER TABLE job_runs ADD COLUMN began   @int  NOT NULL DEFAULT 0;

-- Orders that are given at a time, once or again and again.
CREATE TABLE schedules (
  id          @id,
  revision    @int  NOT NULL,
  next_run_at @int  NOT NULL, -- 0: there is none
  enabled     @int  NOT NULL,
  content     @bytes NOT NULL, -- packed
  sealed      @bytes           -- its secret parameters
);
CREATE INDEX schedules_due ON schedules (next_run_at) WHERE enabled = 1 AND next_run_at > 0;

-- Plans that clients run themselves.
CREATE TABLE plan_jobs (
  id          @id,
  actor       @text NOT NULL,
  status      @text NOT NULL,
  created_at  @int  NOT NULL,
  finished_at @int  NOT NULL,
  content     @bytes NOT NULL -- packed
);

-- Sets of tasks and nodes that clients name.
CREATE TABLE task_targets (
  id      @id,
  content @bytes NOT NULL -- packed
);
