package cell

import "sync/atomic"

// able tells that this program can be its own guard: Main was called, on a system that has cells.
var able atomic.Bool
