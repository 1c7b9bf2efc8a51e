package sql

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. Two servers may start at once: on
// PostgreSQL an advisory lock makes one wait, a SQLite file has one server.
func migrate(ctx context.Context, db *sql.DB, d dialect) error {
	provider, err := provide(db, d)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// migrateTo brings the schema of a fresh database up to a number.
func migrateTo(ctx context.Context, db *sql.DB, d dialect, number int64) error {
	provider, err := provide(db, d)
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, number)
	return err
}

func provide(db *sql.DB, d dialect) (*goose.Provider, error) {
	list, err := readMigrations()
	if err != nil {
		return nil, err
	}
	steps := make([]*goose.Migration, len(list))
	for i, m := range list {
		steps[i] = goose.NewGoMigration(m.Number, &goose.GoFunc{RunTx: runAll(statements(d.words.Replace(m.text)))}, nil)
	}
	options := []goose.ProviderOption{goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true)}
	if d.postgres {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // every second, for five minutes
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(d.goose, db, nil, options...)
}

func runAll(steps []string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		for _, step := range steps {
			if _, err := tx.ExecContext(ctx, step); err != nil {
				return fmt.Errorf("%.60s: %w", step, err)
			}
		}
		return nil
	}
}

// statements splits a file at semicolons that end a line, unless the next line is indented, as in the body of a trigger; comments go.
func statements(text string) []string {
	var out []string
	ended := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "--") || strings.TrimSpace(line) == "" {
			continue
		}
		if len(out) == 0 || ended && !strings.HasPrefix(line, "\t") {
			out = append(out, "")
		}
		out[len(out)-1] += line
		ended = strings.HasSuffix(line, ";\n")
	}
	for i, step := range out {
		out[i] = strings.TrimSuffix(strings.TrimSpace(step), ";")
	}
	return out
}
