package ruby

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed zygote
var zygoteCode embed.FS

// prepareDir empties the scratch directory of an earlier life and writes the
// Ruby code into it.
func prepareDir(cfg Config) error {
	for _, dir := range []string{cfg.codeDir(), cfg.zygoteDir(), cfg.checkDir()} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the directory around it is ours alone; code may run as another user
			return err
		}
	}
	return fs.WalkDir(zygoteCode, "zygote", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(cfg.codeDir(), strings.TrimPrefix(path, "zygote"))
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755) //nolint:gosec // as above
		}
		text, err := zygoteCode.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644) //nolint:gosec // as above
	})
}
