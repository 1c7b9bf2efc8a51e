package cell

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_AARCH64
	foreignBit   = 0
)

// deniedHere are the calls that only this architecture has.
var deniedHere []uint32
