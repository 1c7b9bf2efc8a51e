-- contract: one server had the records then, and nobody ran beside it.
-- Calls of actions that only read, in short: what nodes answered is not kept.
CREATE TABLE calls (
  id         @id,
  actor      @text NOT NULL,
  actor_kind @text NOT NULL,
  module     @text NOT NULL,
  action     @text NOT NULL,
  input      @text NOT NULL, -- JSON, without secrets
  targets    @text NOT NULL, -- which nodes were meant, for people
  nodes      @int  NOT NULL,
  counts     @text NOT NULL, -- JSON: state, number of nodes
  began_at   @int  NOT NULL,
  ended_at   @int  NOT NULL,
  left_early @int  NOT NULL  -- who asked left before all had answered
);
CREATE INDEX calls_ended ON calls (ended_at);
