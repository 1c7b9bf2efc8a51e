package fleetgen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// Fleet is a made-up fleet.
type Fleet struct {
	Seed uint64
	Base time.Time // the time of generation 0; later ones are half an hour apart
}

// Certname is the name of a node.
func (f Fleet) Certname(node int) string { return fmt.Sprintf("node-%05d.example.org", node) }

// When is the time at which a node sent what it sent in a generation.
func (f Fleet) When(node, generation int) time.Time {
	return f.Base.Add(time.Duration(generation)*30*time.Minute + time.Duration(node%1800)*time.Second).UTC()
}

// random gives the numbers of one thing: the same for the same seed and names.
func (f Fleet) random(kind, node, generation int) *rand.Rand {
	return rand.New(rand.NewPCG(f.Seed^uint64(kind)<<56, uint64(node)<<32|uint64(generation))) //nolint:gosec // reproducible on purpose
}

const (
	kindStable = iota + 1
	kindVolatile
	kindReport
	kindSystem
	kindWide
	kindCatalog
	kindHistory
)

// uuid draws a version 4 UUID.
func uuid(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff)
}

// object is a JSON object.
type object = map[string]any

// marshal cannot fail on what this package builds.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fleetgen: %v", err)) // a programmer's mistake
	}
	return text
}
