-- contract: one server had the records then, and nobody ran beside it.
-- A node that only its certificate is known of is listed until it is purged: 1 is a certificate whose node was purged since it was issued.
ALTER TABLE certificates ADD COLUMN unlisted @int NOT NULL DEFAULT 0;
