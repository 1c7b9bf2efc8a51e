-- expand: older programs leave it empty, which says that a server is not one of these.
-- What a server that stands near its nodes says of itself, as JSON; see lease.Near.
ALTER TABLE servers ADD COLUMN near @text NOT NULL DEFAULT '';
