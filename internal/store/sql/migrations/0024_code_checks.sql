-- contract: one server had the records then, and nobody ran beside it.
-- What was found in versions of code before they were deployed. A row means something as long as its version is there.
CREATE TABLE code_checks (
  environment @text NOT NULL,
  version     @text NOT NULL,
  checked_at  @int  NOT NULL,
  document    @text NOT NULL,
  PRIMARY KEY (environment, version)
);
