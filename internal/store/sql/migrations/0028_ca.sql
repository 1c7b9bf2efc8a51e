-- contract: one server had the records then, and nobody ran beside it.
-- The server's own certificates are rows, too: their numbers and names are nobody else's.
ALTER TABLE certificates ADD COLUMN server @int NOT NULL DEFAULT 0;
CREATE INDEX certificates_server ON certificates (serial) WHERE server = 1;
-- Serial numbers are random.
DELETE FROM counters WHERE name = 'serial';
-- Where a request came from: what waits is limited for each address.
ALTER TABLE requests ADD COLUMN origin @text NOT NULL DEFAULT '';
-- Which CA directory these records belong to, and how far its journal has been written into them.
CREATE TABLE ca_anchor (
  id       @int  PRIMARY KEY,
  identity @text NOT NULL,
  seq      @int  NOT NULL,
  chain    @text NOT NULL
);
