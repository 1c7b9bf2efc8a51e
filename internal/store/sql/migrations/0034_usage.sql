-- contract: one server had the records then, and nobody ran beside it.
-- What each part of the data took on a day.
CREATE TABLE usage_samples (
  day      @int  NOT NULL,
  area     @text NOT NULL,
  taken_at @int  NOT NULL,
  bytes    @int  NOT NULL,
  PRIMARY KEY (day, area)
);
