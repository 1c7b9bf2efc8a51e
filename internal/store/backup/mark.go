package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// MarkerFile stands in a data directory while something of it is restored. A server does not
// start on it.
const MarkerFile = "restore-unfinished"

// again says how to repeat a restore that did not end; it is the second line of the marker.
func (s Share) again() string {
	switch s {
	case OnlyCA:
		return "remove the directory ca and restore it again (--only ca)"
	case OnlyRows:
		return "remove tutti.db, or make an empty PostgreSQL database, and restore the records again (--only records)"
	case OnlyBlobs:
		return "restore the blobs again (--only blobs)"
	case Everything:
	}
	return "empty the directory and restore again"
}

// CheckDataDir refuses a data directory with a restore that did not end.
func CheckDataDir(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, MarkerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, how, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if how == "" {
		how = Everything.again()
	}
	return fault.New(fault.Conflict, "a restore into %s did not end, so something is missing there: %s", dir, how)
}

// mark says that a restore into dir is under way, until done is called. Conflict if another one
// did not end.
func mark(dir string, share Share) (done func() error, err error) {
	path, text := filepath.Join(dir, MarkerFile), "share "+string(share)+"\n"+share.again()+"\n"
	if before, err := os.ReadFile(path); err == nil && string(before) != text {
		return nil, CheckDataDir(dir)
	}
	if err := replace(path, []byte(text)); err != nil {
		return nil, err
	}
	return func() error { return disk(dir, errors.Join(syncAll(dir), os.Remove(path), syncAll(dir))) }, nil
}
