//go:build unix

package agent

import (
	"os"
	"syscall"
)

// ownerOf is whom a file belongs to, if that is somebody else.
func ownerOf(info os.FileInfo) *owner {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() && int(s.Gid) == os.Getegid() {
		return nil
	}
	return &owner{int(s.Uid), int(s.Gid)}
}
