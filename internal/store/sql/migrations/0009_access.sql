-- contract: one server had the records then, and nobody ran beside it.
-- Who may do what. Lists of roles and grants are JSON.
DROP TABLE access_tokens;

CREATE TABLE users (
  name         @text PRIMARY KEY,
  kind         @text NOT NULL,
  roles        @text NOT NULL,
  password     @text NOT NULL,
  disabled     @int  NOT NULL,
  created_at   @int  NOT NULL,
  changed_at   @int  NOT NULL,
  changed_by   @text NOT NULL,
  login_at     @int  NOT NULL,
  failures     @int  NOT NULL,
  locked_until @int  NOT NULL
);

CREATE TABLE roles (
  name        @text PRIMARY KEY,
  description @text NOT NULL,
  grants      @text NOT NULL,
  changed_at  @int  NOT NULL,
  changed_by  @text NOT NULL
);

-- Tokens that users show; kept as the SHA-256 of their text.
CREATE TABLE access_tokens (
  id         @text PRIMARY KEY,
  hash       @text NOT NULL UNIQUE,
  owner      @text NOT NULL,
  label      @text NOT NULL,
  roles      @text NOT NULL,
  narrowed   @int  NOT NULL,
  created_at @int  NOT NULL,
  expires_at @int  NOT NULL,
  used_at    @int  NOT NULL
);

CREATE UNIQUE INDEX access_tokens_by_label ON access_tokens (owner, label) WHERE label <> '';

CREATE INDEX access_tokens_by_owner ON access_tokens (owner, id);

-- What was done and refused.
CREATE TABLE acts (
  id         @id,
  happened_at @int NOT NULL,
  actor_kind @text NOT NULL,
  actor      @text NOT NULL,
  token      @text NOT NULL,
  operation  @text NOT NULL,
  object     @text NOT NULL,
  remote     @text NOT NULL,
  request_id @text NOT NULL,
  outcome    @text NOT NULL,
  detail     @text NOT NULL
);

CREATE INDEX acts_by_time ON acts (happened_at);

CREATE INDEX acts_by_actor ON acts (actor, id);
