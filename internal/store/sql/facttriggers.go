package sql

// The triggers that keep the index of facts, as migration 57 makes them. They are part of the schema, like the migration: what is indexed another
// way needs a new one. Both keep the first 64 characters of a string, query.IndexedLength, and nothing of other kinds of value (a string is 4).

// SQLite runs them for each row, and the conditions leave only facts of indexed paths.
const sqliteFactTriggers = `CREATE TRIGGER facts_inserted AFTER INSERT ON facts
WHEN EXISTS (SELECT 1 FROM indexed_paths p WHERE p.path_id = NEW.path_id)
BEGIN
	INSERT INTO indexed_facts (node_id, path_id, value)
		SELECT NEW.node_id, NEW.path_id, substr(NEW.value, 1, 64) WHERE NEW.kind = 4
		ON CONFLICT (node_id, path_id) DO UPDATE SET value = excluded.value;
	END;
CREATE TRIGGER facts_updated AFTER UPDATE ON facts
WHEN EXISTS (SELECT 1 FROM indexed_paths p WHERE p.path_id = NEW.path_id)
BEGIN
	DELETE FROM indexed_facts WHERE node_id = OLD.node_id AND path_id = OLD.path_id;
	INSERT INTO indexed_facts (node_id, path_id, value)
		SELECT NEW.node_id, NEW.path_id, substr(NEW.value, 1, 64) WHERE NEW.kind = 4;
	END;
CREATE TRIGGER facts_deleted AFTER DELETE ON facts
WHEN EXISTS (SELECT 1 FROM indexed_paths p WHERE p.path_id = OLD.path_id)
BEGIN
	DELETE FROM indexed_facts WHERE node_id = OLD.node_id AND path_id = OLD.path_id;
	END`

// PostgreSQL runs them once for a statement. Most statements change facts of no indexed path: an array tells that without a join, which would
// cost more than all else here.
const postgresFactTriggers = `CREATE FUNCTION index_facts() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		paths BIGINT[] := ARRAY(SELECT path_id FROM indexed_paths);
	BEGIN
		IF EXISTS (SELECT 1 FROM changed c WHERE c.path_id = ANY (paths)) THEN
			DELETE FROM indexed_facts i USING changed c
				WHERE i.node_id = c.node_id AND i.path_id = c.path_id AND c.kind <> 4;
			INSERT INTO indexed_facts (node_id, path_id, value)
				SELECT c.node_id, c.path_id, substr(c.value, 1, 64) FROM changed c WHERE c.path_id = ANY (paths) AND c.kind = 4
				ON CONFLICT (node_id, path_id) DO UPDATE SET value = excluded.value WHERE indexed_facts.value <> excluded.value;
		END IF;
		RETURN NULL;
	END $$;
CREATE FUNCTION unindex_facts() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		paths BIGINT[] := ARRAY(SELECT path_id FROM indexed_paths);
	BEGIN
		IF EXISTS (SELECT 1 FROM changed c WHERE c.path_id = ANY (paths)) THEN
			DELETE FROM indexed_facts i USING changed c WHERE i.node_id = c.node_id AND i.path_id = c.path_id;
		END IF;
		RETURN NULL;
	END $$;
CREATE TRIGGER facts_inserted AFTER INSERT ON facts REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION index_facts();
CREATE TRIGGER facts_updated AFTER UPDATE ON facts REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION index_facts();
CREATE TRIGGER facts_deleted AFTER DELETE ON facts REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION unindex_facts()`
