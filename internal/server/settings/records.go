package settings

import (
	"path/filepath"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// Records is where a server's records are.
func (c Config) Records(dir string) sql.Config {
	return sql.Config{Path: filepath.Join(dir, "tutti.db"), URL: c.Database, Version: api.ProgramVersion()}
}
