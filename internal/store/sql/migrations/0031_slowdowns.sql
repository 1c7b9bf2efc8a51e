-- contract: one server had the records then, and nobody ran beside it.
-- How many compilations in a row took too long: of an environment's catalogs, or of its previews and checks (apart).
CREATE TABLE compile_slowdowns (
  environment @text NOT NULL,
  apart       @int  NOT NULL,
  version     @text NOT NULL, -- of the code that takes too long
  timeouts    @int  NOT NULL,
  since       @int  NOT NULL, -- when it was slowed; 0: not yet
  rests_until @int  NOT NULL,
  PRIMARY KEY (environment, apart)
);
