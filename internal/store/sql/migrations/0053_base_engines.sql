-- expand: older programs leave it empty, which says that nothing is known.
-- The engine that compiled the catalog that a node of a preview has; empty: not known.
ALTER TABLE preview_shares ADD COLUMN base_engine @text NOT NULL DEFAULT '';
