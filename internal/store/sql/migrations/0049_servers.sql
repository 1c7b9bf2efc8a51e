-- expand: older programs do not look at it.
-- Who does what must exist once, and who there is; see package lease.
CREATE TABLE leases (
  name   @text NOT NULL PRIMARY KEY,
  holder @text NOT NULL,
  token  @int  NOT NULL,
  since  @int  NOT NULL,
  until  @int  NOT NULL, -- in no index: renewals are frequent
  UNIQUE (name, token)   -- so that a new token waits for writes that checked the one before, and a renewal does not
);

-- The servers that use these records, and those that ended without a word.
CREATE TABLE servers (
  id      @text NOT NULL PRIMARY KEY,
  address @text NOT NULL,
  version @text NOT NULL,
  started @int  NOT NULL,
  seen    @int  NOT NULL -- in no index
);
