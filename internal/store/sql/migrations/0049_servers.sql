-- Who does what must exist once; see package lease. Expands: older versions do not look at it.
CREATE TABLE leases (
  name   @text NOT NULL PRIMARY KEY,
  holder @text NOT NULL,
  token  @int  NOT NULL,
  since  @int  NOT NULL,
  until  @int  NOT NULL, -- in no index: renewals are frequent
  UNIQUE (name, token)   -- so that a new token waits for writes that checked the one before, and a renewal does not
);
