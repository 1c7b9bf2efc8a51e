-- contract: one server had the records then, and nobody ran beside it.
-- Which runs of a job wait for which others, by their numbers: a compressed list; none if the job has no order.
ALTER TABLE jobs ADD COLUMN edges @bytes;
