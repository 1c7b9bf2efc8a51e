package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// schemaOf tells the number of the schema, and which version of the program first had it.
func schemaOf(ctx context.Context, q querier, tables []string) (number int64, writer string, err error) {
	number, err = one[int64](q.row(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"))
	if err != nil || !slices.Contains(tables, "schema_writers") {
		return number, "", err
	}
	writer, err = one[string](q.row(ctx, "SELECT version FROM schema_writers WHERE schema = $1", number))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return number, writer, err
}

// newestSchema is the number of the last migration of this program.
func newestSchema() (int64, error) {
	list, err := readMigrations()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[len(list)-1].Number, nil
}

// examine looks at a database that is about to be migrated. It returns the number of its schema,
// 0 for a fresh one, and whether it is behind this program; Conflict when it is ahead: an
// older program would write what a newer one understands differently. Conflict, too, when its records moved.
func examine(ctx context.Context, q querier, d dialect) (number int64, behind bool, err error) {
	number, behind, err = examineWith(ctx, q, d)
	if err == nil && number > 0 {
		err = refuseMoved(ctx, q, d)
	}
	return number, behind, err
}

func examineWith(ctx context.Context, q querier, d dialect) (number int64, behind bool, err error) {
	tables, err := collect(ctx, q, one[string], d.described.tables)
	if err != nil || len(tables) == 0 {
		return 0, false, err
	}
	number, writer, err := schemaOf(ctx, q, tables)
	if err != nil {
		return 0, false, err
	}
	newest, err := newestSchema()
	if err == nil && number > newest {
		err = tooNew(number, newest, writer)
	}
	return number, number < newest, err
}

func tooNew(number, newest int64, writer string) error {
	return fault.New(fault.Conflict, "the database has schema %d, and this program knows schemas up to %d: use %s; docs/backup.md says how to go back",
		number, newest, versionOf(writer))
}

// versionOf names the program that has a schema.
func versionOf(writer string) string {
	if writer == "" {
		return "the newer tutti that used it last"
	}
	return "tutti " + writer + " or newer"
}

// sign notes that this version of the program has the newest schema.
func sign(ctx context.Context, db *sql.DB, version string) error {
	newest, err := newestSchema()
	if err != nil {
		return err
	}
	_, err = plain{db}.exec(ctx, "INSERT INTO schema_writers (schema, version, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		newest, version, micros(time.Now()))
	if err != nil {
		return fmt.Errorf("note who made the schema: %w", err)
	}
	return nil
}

// bringUp brings the schema up to date. Of a SQLite file a copy is kept first, for the way back.
func (s *Store) bringUp(ctx context.Context, db *sql.DB, d dialect, config Config) error {
	number, behind, err := examine(ctx, plain{db}, d)
	if err != nil {
		return err
	}
	if behind && number > 0 && s.file != nil {
		if err := s.file.keep(ctx, db, number); err != nil {
			return err
		}
		s.log.InfoContext(ctx, "a copy of the database is kept before its schema changes", "schema", number, "copy", s.file.copyOf(number))
	}
	if behind && number > 0 && d.postgres {
		list, err := readMigrations()
		if err != nil {
			return err
		}
		if contracts(following(number, list)) {
			conn, err := s.alone(ctx, db, d)
			if err != nil {
				return err
			}
			defer letGo(ctx, conn)
		}
	}
	if err := migrate(ctx, db, d); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return sign(ctx, db, config.Version)
}
