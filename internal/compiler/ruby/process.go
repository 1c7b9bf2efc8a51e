package ruby

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// socketpair makes two connected stream sockets. The first one stays here, the
// second one is for another process; neither is inherited by accident.
func socketpair() (*net.UnixConn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "worker")
	defer func() { _ = ours.Close() }() // FileConn keeps a duplicate
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}
