-- contract: one server had the records then, and nobody ran beside it.
-- The order in which facts came, where it is not the sorted one: for compiling.
ALTER TABLE factsets ADD COLUMN arrangement @text NOT NULL DEFAULT ''; -- its digest
ALTER TABLE fact_documents ADD COLUMN told @bytes; -- the node's own facts in that order
ALTER TABLE fact_intake ADD COLUMN arrangement @text NOT NULL DEFAULT '';
