-- expand: older programs do not look at it.
-- Who is connected to which of several servers; see broker.Roster. A server that is alone writes nothing here.
CREATE TABLE presence (
  uri        @text NOT NULL PRIMARY KEY,
  server     @text NOT NULL, -- its row in servers says whether this counts
  session    @int  NOT NULL, -- of two of the same client, the higher one came later
  certname   @text NOT NULL,
  party      @int  NOT NULL,
  version    @int  NOT NULL,
  agent      @text NOT NULL,
  remote     @text NOT NULL,
  since      @int  NOT NULL,
  superseded @int  NOT NULL
);
CREATE INDEX presence_server ON presence (server);

CREATE TABLE presence_numbers (
  id   @int NOT NULL PRIMARY KEY,
  last @int NOT NULL -- session
);
INSERT INTO presence_numbers (id, last) VALUES (1, 0);
