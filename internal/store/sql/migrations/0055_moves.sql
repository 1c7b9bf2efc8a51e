-- expand: older programs do not look at it.
-- Whether these records moved here, and do not count yet, or moved away, and count no more; see package move. No row: they count.
CREATE TABLE moves (
  id    @text NOT NULL PRIMARY KEY,
  state @text NOT NULL, -- arriving, left
  other @text NOT NULL, -- the other database, in words
  at    @int  NOT NULL
);
