-- contract: one server had the records then, and nobody ran beside it.
-- What one node keeps in the filebucket, counted without reading its rows.
CREATE INDEX backups_of_node ON backups (node, blob, size);
