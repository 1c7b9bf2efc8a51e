-- contract: one server had the records then, and nobody ran beside it.
-- Orders over many nodes. A job's spec, what is large in it, and what its runs wrote are
-- compressed; what is secret in a job is sealed, and goes when it has ended.
CREATE TABLE jobs (
  id          @id,
  kind        @text NOT NULL,
  task        @text NOT NULL,
  spec        @bytes NOT NULL,
  bulk        @bytes NOT NULL,
  sealed      @bytes,
  actor       @text NOT NULL,
  actor_kind  @text NOT NULL,
  status      @text NOT NULL,
  reason      @text NOT NULL,
  halted      @int  NOT NULL,
  killed      @int  NOT NULL,
  rerun_of    @int  NOT NULL,
  created_at  @int  NOT NULL,
  started_at  @int  NOT NULL,
  finished_at @int  NOT NULL,
  counts      @text NOT NULL,
  change      @int  NOT NULL,
  own_change  @int  NOT NULL
);

CREATE INDEX jobs_unended ON jobs (id) WHERE status IN ('queued', 'running', 'stopping');

CREATE INDEX jobs_by_end ON jobs (finished_at) WHERE status IN ('finished', 'failed', 'stopped');

CREATE TABLE job_runs (
  job_id      @int  NOT NULL REFERENCES jobs (id),
  number      @int  NOT NULL,
  id          @text NOT NULL UNIQUE,
  node        @text NOT NULL,
  state       @text NOT NULL,
  reason      @text NOT NULL DEFAULT '',
  ending      @text NOT NULL DEFAULT '',
  sent_at     @int  NOT NULL DEFAULT 0,
  started_at  @int  NOT NULL DEFAULT 0,
  finished_at @int  NOT NULL DEFAULT 0,
  due_at      @int  NOT NULL DEFAULT 0,
  attempts    @int  NOT NULL DEFAULT 0,
  exit_code   @int,
  puppet      @text NOT NULL DEFAULT '',
  lines       @int  NOT NULL DEFAULT 0,
  bytes       @int  NOT NULL DEFAULT 0,
  digest      @text NOT NULL DEFAULT '',
  cut         @int  NOT NULL DEFAULT 0,
  change      @int  NOT NULL DEFAULT 0,
  PRIMARY KEY (job_id, number)
) @clustered;

CREATE INDEX job_runs_by_change ON job_runs (job_id, change);

CREATE INDEX job_runs_waiting ON job_runs (job_id, number) WHERE state = 'waiting';

CREATE INDEX job_runs_due ON job_runs (due_at) WHERE state IN ('sent', 'running');

CREATE INDEX job_runs_unfinished ON job_runs (node) WHERE state IN ('waiting', 'sent', 'running');

CREATE INDEX job_runs_by_node ON job_runs (node, job_id);

CREATE TABLE job_output (
  job_id @int  NOT NULL,
  number @int  NOT NULL,
  first  @int  NOT NULL,
  count  @int  NOT NULL,
  at     @int  NOT NULL,
  text   @bytes NOT NULL,
  PRIMARY KEY (job_id, number, first),
  FOREIGN KEY (job_id, number) REFERENCES job_runs (job_id, number)
);

-- Blobs that nodes fetch for a job.
CREATE TABLE job_files (
  digest @text NOT NULL,
  job_id @int  NOT NULL REFERENCES jobs (id),
  PRIMARY KEY (digest, job_id)
) @clustered;

CREATE INDEX job_files_by_job ON job_files (job_id);
