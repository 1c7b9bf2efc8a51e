//go:build amd64 || arm64

package cell

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are the system calls that nothing in a cell may make: looking into other processes, mounts,
// kernel keys, BPF, modules, namespaces, rings that pass by the filter, the clock. They fail as for somebody
// without the right to them, since much code only tries.
var denied = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
	unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_NFSSERVCTL,
}

// families are the kinds of sockets that may be made.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Offsets in what a filter sees of a call.
const (
	atNumber   = 0
	atArch     = 4
	atArgument = 16 // the low half of the first argument
)

// setFilter is the operation of the call seccomp.
const setFilter = 1

// newSpaces are the flags of clone that make namespaces.
const newSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

func refuse(errno unix.Errno) uint32 {
	return unix.SECCOMP_RET_ERRNO | uint32(errno&unix.SECCOMP_RET_DATA)
}

// filter is the program that the kernel runs at each call.
type filter []unix.SockFilter

func (f *filter) add(code uint16, yes, no uint8, k uint32) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (f *filter) load(offset uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }

func (f *filter) end(action uint32) { f.add(unix.BPF_RET|unix.BPF_K, 0, 0, action) }

// equal goes on with the next step if what is loaded is k, and else behind so many steps.
func (f *filter) equal(k uint32, skip uint8) { f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, skip, k) }

// newFilter makes the filter. Calls of another architecture have other numbers: what makes one is killed.
func newFilter() filter {
	var f filter
	f.load(atArch)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, architecture)
	f.end(unix.SECCOMP_RET_KILL_PROCESS)
	f.load(atNumber)
	if foreignBit != 0 { // the same architecture with other numbers
		f.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, 1, foreignBit)
		f.end(refuse(unix.ENOSYS))
	}
	// The arguments of clone3 cannot be looked at; libraries fall back to clone.
	f.equal(unix.SYS_CLONE3, 1)
	f.end(refuse(unix.ENOSYS))
	f.equal(unix.SYS_CLONE, 4)
	f.load(atArgument)
	f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, 1, newSpaces)
	f.end(refuse(unix.EPERM))
	f.load(atNumber)
	// The limits of others are not theirs: 0 is who asks.
	f.equal(unix.SYS_PRLIMIT64, 4)
	f.load(atArgument)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, 0)
	f.end(refuse(unix.EPERM))
	f.load(atNumber)
	f.equal(unix.SYS_SOCKET, uint8(len(families)+3)) //nolint:gosec // a handful
	f.load(atArgument)
	for i, family := range families {
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint8(len(families)-i), 0, family) //nolint:gosec // a handful
	}
	f.end(refuse(unix.EAFNOSUPPORT))
	f.load(atNumber)
	for _, number := range slices.Concat(denied, deniedHere) {
		f.equal(number, 1)
		f.end(refuse(unix.EPERM))
	}
	f.end(unix.SECCOMP_RET_ALLOW)
	return f
}

// enforce puts the filter in force for the calling thread and what it starts.
func (f filter) enforce() error {
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]} //nolint:gosec // a hundred steps
	//nolint:gosec // the kernel reads it during the call, and takes it in no other way
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, setFilter, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("put the filter of system calls in force: %w", errno)
	}
	return nil
}
