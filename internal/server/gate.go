package server

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/compile"
)

// loadGate is compile.Gate by the machine's load of the last minute.
type loadGate struct {
	most float64 // for each core; above it the machine is full; 0: it never is
	idle float64 // for each core; up to it the machine is idle; 0: it always is
}

// Room implements compile.Gate.
func (g loadGate) Room(context.Context) compile.Room {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return compile.Idle // not every system tells
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return compile.Idle
	}
	return g.room(load / float64(runtime.NumCPU()))
}

// room decides for the load of each core.
func (g loadGate) room(load float64) compile.Room {
	switch {
	case g.most > 0 && load > g.most:
		return compile.Full
	case g.idle > 0 && load > g.idle:
		return compile.Some
	}
	return compile.Idle
}
