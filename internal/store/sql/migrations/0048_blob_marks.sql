-- expand: older programs do not look at it.
-- What is known of the content of an S3 store; see cas.Marks.
CREATE TABLE blob_marks (
  digest  @text NOT NULL PRIMARY KEY,
  bytes   @int  NOT NULL,
  stored  @int  NOT NULL, -- 0: somebody is about to put it
  renewed @int  NOT NULL,
  leaving @int  NOT NULL  -- until when somebody may be removing it; 0: nobody is
);

-- The store that the marks are of; without a row they are of none.
CREATE TABLE blob_store (
  id    @int  NOT NULL PRIMARY KEY, -- 1
  name  @text NOT NULL
);
