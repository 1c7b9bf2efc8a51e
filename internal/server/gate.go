package server

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// loadGate is compile.Gate: no new compilation starts while the machine's load
// of the last minute is above a limit.
type loadGate struct {
	limit float64 // for each core; 0: always open
}

func (g loadGate) Open(context.Context) bool {
	if g.limit <= 0 {
		return true
	}
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return true // not every system tells
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	return err != nil || load <= g.limit*float64(runtime.NumCPU())
}
