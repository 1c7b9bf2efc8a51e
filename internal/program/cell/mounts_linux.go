//go:build amd64 || arm64

package cell

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// place arranges the file systems of the guard's own namespace as its program shall see them: its own /proc, hidden
// directories, a private one in memory, all others read-only.
func place(o order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts to ourselves: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount a /proc of its own: %w", err)
	}
	boundNumbers(o.Limits.Processes)
	if err := hide(o); err != nil {
		return err
	}
	if o.Write != "" {
		if err := scratch(o); err != nil {
			return err
		}
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all); err != nil {
		return fmt.Errorf("make file systems read-only: %w", err)
	}
	if o.Write == "" {
		return nil
	}
	own := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, o.Write, 0, &own); err != nil {
		return fmt.Errorf("make the private directory writable: %w", err)
	}
	return nil
}

// reserved process numbers are given out once only.
const reserved = 300

// boundNumbers bounds how many processes and threads there can be. Before Linux 6.14 the bound is one of the whole
// machine: then it is left alone.
func boundNumbers(processes int) {
	var name unix.Utsname
	var major, minor int
	if unix.Uname(&name) != nil {
		return
	}
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); n == 2 && (major > 6 || major == 6 && minor >= 14) {
		// In a user namespace this is refused, but there the limit of the user counts for this cell alone.
		_ = os.WriteFile("/proc/sys/kernel/pid_max", fmt.Append(nil, reserved+processes), 0o600)
	}
}

// point is a path that must be seen again in a hidden directory.
type point struct {
	path string
	from *os.File
	dir  bool
}

// hide covers directories by empty ones, and brings back what is below them and was named.
func hide(o order) error {
	var covers []string
	for _, dir := range o.Hide {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			covers = append(covers, filepath.Clean(dir))
		}
	}
	slices.SortFunc(covers, byLength)
	var points []point
	defer func() {
		for _, p := range points {
			_ = p.from.Close()
		}
	}()
	for _, path := range slices.Concat(o.Read, o.Run) {
		points = append(points, find(path, covers)...)
	}
	for _, dir := range covers {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // below another one
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m,nr_inodes=4096"); err != nil {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	slices.SortFunc(points, func(a, b point) int { return byLength(a.path, b.path) })
	for _, p := range points {
		if err := p.show(covers); err != nil {
			return err
		}
	}
	return nil
}

func byLength(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// find opens a path that will be hidden, by its name and by where that leads.
func find(path string, covers []string) (points []point) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil // it is not there; the ruleset says so
	}
	names := []string{filepath.Clean(path), target}
	for _, name := range slices.Compact(names) {
		if !slices.ContainsFunc(covers, func(dir string) bool { return below(name, dir) }) {
			continue
		}
		fd, err := unix.Open(target, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		var stat unix.Stat_t
		p := point{path: name, from: os.NewFile(uintptr(fd), target)}
		p.dir = unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR
		points = append(points, p)
	}
	return points
}

// below tells whether a path is dir, or in it.
func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// show makes the path what it was. What came with a directory around it is there already.
func (p point) show(covers []string) error {
	if _, err := os.Stat(p.path); err == nil && !slices.Contains(covers, p.path) {
		return nil
	}
	if err := p.make(); err != nil {
		return fmt.Errorf("show %s: %w", p.path, err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", p.from.Fd()), p.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", p.path, err)
	}
	return nil
}

func (p point) make() error {
	if p.dir {
		return os.MkdirAll(p.path, 0o755) //nolint:gosec // in a file system of the cell's own
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	file, err := os.OpenFile(p.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// scratch makes the private directory: in memory, so that its size has a bound and it ends with the cell.
func scratch(o order) error {
	if err := os.MkdirAll(o.Write, 0o755); err != nil { //nolint:gosec // the mount has the mode that counts
		return fmt.Errorf("make the private directory: %w", err)
	}
	options := fmt.Sprintf("mode=0700,size=%d,nr_inodes=%d", o.Limits.ScratchBytes, max(1024, o.Limits.ScratchBytes>>12))
	if o.UID != 0 {
		options += fmt.Sprintf(",uid=%d,gid=%d", o.UID, o.GID)
	}
	if err := unix.Mount("tmpfs", o.Write, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("make the private directory: %w", err)
	}
	return nil
}
