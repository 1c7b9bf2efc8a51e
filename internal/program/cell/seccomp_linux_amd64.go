package cell

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_X86_64
	foreignBit   = 1 << 30 // x32
)

// deniedHere are the calls that only this architecture has.
var deniedHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE}
