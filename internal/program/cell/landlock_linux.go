//go:build amd64 || arm64

package cell

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights that a rule of Landlock may allow; each version of it brought some.
const (
	readRights  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	runRights   = readRights | unix.LANDLOCK_ACCESS_FS_EXECUTE
	writeRights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE // no devices, nothing to run
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fileRights   = deviceRights | unix.LANDLOCK_ACCESS_FS_EXECUTE // of what is no directory

	firstRights = 1<<13 - 1 // those of the first version
	rulePort    = 2         // a rule about a TCP port
)

// landlockVersion is the kernel's; 0 when it has none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// handled is what a version of Landlock can restrict, and how many bytes of it the version knows.
func handled(version int) (unix.LandlockRulesetAttr, uintptr) {
	attr, size := unix.LandlockRulesetAttr{Handled_access_fs: firstRights}, uintptr(8)
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		attr.Handled_access_net, size = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 16
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped, size = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL, 24
	}
	return attr, size
}

// ruleset is a set of rules that is not in force yet.
type ruleset struct {
	fd      int
	version int
	files   uint64 // the rights that it restricts
	absent  []string
}

// newRuleset opens the paths of an order while that can still be done; nil without Landlock.
func newRuleset(o order) (*ruleset, error) {
	version := landlockVersion()
	if version == 0 {
		return nil, nil //nolint:nilnil // there is none, which is no error here
	}
	attr, size := handled(version)
	//nolint:gosec // the kernel reads it during the call, and takes it in no other way
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	r := &ruleset{fd: int(fd), version: version, files: attr.Handled_access_fs}
	unix.CloseOnExec(r.fd)
	var private []string
	if o.Write != "" {
		private = []string{o.Write}
	}
	for _, grant := range []struct {
		paths  []string
		rights uint64
	}{{o.Read, readRights}, {o.Run, runRights}, {private, writeRights}, {devices, deviceRights}} {
		for _, path := range grant.paths {
			if err := r.allow(path, grant.rights); err != nil {
				return nil, err
			}
		}
	}
	return r, r.allowPorts(o.Ports)
}

// allow adds a path; one that is not there is noted.
func (r *ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		r.absent = append(r.absent, path)
		return nil // noted, and reported
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	//nolint:gosec // a descriptor
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.files, Parent_fd: int32(fd)}
	//nolint:gosec // the kernel reads it during the call, and takes it in no other way
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", path, errno)
	}
	return nil
}

func (r *ruleset) allowPorts(ports []int) error {
	if r.version < 4 {
		return nil
	}
	for _, port := range ports {
		//nolint:gosec // checked by whoever made the order
		rule := [2]uint64{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
		//nolint:gosec // the kernel reads it during the call, and takes it in no other way
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), rulePort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if errno != 0 {
			return fmt.Errorf("allow port %d: %w", port, errno)
		}
	}
	return nil
}

// enforce puts the rules in force for the calling thread and what it starts.
func (r *ruleset) enforce() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("put Landlock's rules in force: %w", errno)
	}
	return nil
}
