-- expand: older programs do not look at it.
-- What all servers that use these records must have alike, each encrypted with a key that is not here.
CREATE TABLE cluster_secrets (
  name   @text  NOT NULL PRIMARY KEY,
  sealed @bytes NOT NULL
);
-- The CA's journal, where several servers share the CA: each copies from here what others did. A server that is alone writes nothing
-- here, and takes the lines away when it begins its journal anew.
CREATE TABLE ca_journal (
  seq  @int   NOT NULL PRIMARY KEY,
  line @bytes NOT NULL
);
-- What a server does, and since when it is to do no more.
ALTER TABLE servers ADD COLUMN roles @text NOT NULL DEFAULT '';
ALTER TABLE servers ADD COLUMN draining @int NOT NULL DEFAULT 0;
ALTER TABLE servers ADD COLUMN drain_micros @int NOT NULL DEFAULT 0;
