package sim

import (
	"math/rand/v2"
	"time"
)

// Faults is how often messages go astray, each as a share between 0 and 1. The zero
// value is a network without fault.
type Faults struct {
	Drop     float64       // it never arrives
	Repeat   float64       // it arrives twice
	Delay    float64       // it arrives late
	Cut      float64       // it arrives, and the connection breaks
	MaxDelay time.Duration // how late at most
}

// fate is what happens to one message.
type fate struct {
	drop, repeat, cut bool
	delay             time.Duration
}

// direction is which way a message goes.
type direction uint64

const (
	toNode direction = iota
	fromNode
)

// fates decides what happens to the messages of one node in one direction. The
// n-th message of a node has the same fate whenever the seed is the same.
type fates struct {
	Faults
	random *rand.Rand
}

func newFates(f Faults, seed uint64, node int, way direction) *fates {
	return &fates{f, rand.New(rand.NewPCG(seed, uint64(node)<<1|uint64(way)))} //nolint:gosec // repeatable, and nodes are few
}

// next is the next message's fate. It draws as often whatever the outcome, so that
// one message's fate does not change the next one's.
func (f *fates) next() fate {
	luck, late := f.random.Float64(), f.random.Float64()
	switch {
	case luck < f.Drop:
		return fate{drop: true}
	case luck < f.Drop+f.Repeat:
		return fate{repeat: true}
	case luck < f.Drop+f.Repeat+f.Delay:
		return fate{delay: time.Duration(late * float64(f.MaxDelay))}
	case luck < f.Drop+f.Repeat+f.Delay+f.Cut:
		return fate{cut: true}
	}
	return fate{}
}
