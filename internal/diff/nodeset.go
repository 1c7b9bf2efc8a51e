package diff

import (
	"iter"
	"math/bits"
	"slices"
)

// nodeSet is a set of node numbers: a list while it is small, a bit for each number
// afterwards. 10 000 nodes take at most 1 250 bytes.
type nodeSet struct {
	few  []uint32
	bits []uint64 // once there are many
	size int
}

// fewNodes is up to how many numbers a list is smaller and quick enough.
const fewNodes = 64

// add puts a number in and says whether it is new.
func (s *nodeSet) add(n uint32) bool {
	if s.bits == nil && len(s.few) < fewNodes {
		if slices.Contains(s.few, n) {
			return false
		}
		s.few = append(s.few, n)
		s.size++
		return true
	}
	for _, old := range s.few {
		s.set(old)
	}
	s.few = nil
	if !s.set(n) {
		return false
	}
	s.size++
	return true
}

// set sets a bit and says whether it was not set before.
func (s *nodeSet) set(n uint32) bool {
	word, bit := int(n/64), uint64(1)<<(n%64)
	if word >= len(s.bits) {
		s.bits = append(s.bits, make([]uint64, word+1-len(s.bits))...)
	}
	before := s.bits[word]
	s.bits[word] |= bit
	return before&bit == 0
}

// all lists the numbers in order.
func (s *nodeSet) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, n := range slices.Sorted(slices.Values(s.few)) {
			if !yield(n) {
				return
			}
		}
		for i, word := range s.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(i)*64 + uint32(bits.TrailingZeros64(word))) { //nolint:gosec // an index of few nodes
					return
				}
			}
		}
	}
}
