-- contract: one server had the records then, and nobody ran beside it.
-- The administrator's token of the data directory is made known once; marks and a chain for the audit log.
CREATE TABLE admin_secrets (
  hash    @text PRIMARY KEY,
  seen_at @int NOT NULL
);

ALTER TABLE acts ADD COLUMN mark @text NOT NULL DEFAULT '';

-- The chain of the audit log: a line for each entry that is recorded, and for each outcome. Its digest is of
-- its text, which has the digest of the line before. What a line says of an entry is in the entry's row.
CREATE TABLE act_lines (
  seq      @int  PRIMARY KEY,
  kind     @text NOT NULL,
  act      @int  NOT NULL,
  made_at  @int  NOT NULL,
  upto     @int  NOT NULL,
  through  @text NOT NULL,
  previous @text NOT NULL,
  digest   @text NOT NULL
);

CREATE INDEX act_lines_by_act ON act_lines (act, seq);

-- The newest line, so that who adds one waits for who adds another.
CREATE TABLE act_end (
  id     @int  PRIMARY KEY,
  seq    @int  NOT NULL,
  digest @text NOT NULL
);

INSERT INTO act_end VALUES (1, 0, '');

-- Signatures of the CA's key over lines.
CREATE TABLE act_heads (
  seq       @int  PRIMARY KEY,
  digest    @text NOT NULL,
  signed_at @int  NOT NULL,
  signer    @text NOT NULL,
  signature @text NOT NULL
);
