package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestIdleHeap(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	var idle idleHeap
	for i, step := range []struct {
		allocated uint64
		due       bool
	}{
		{1 * mb, false},   // quiet, but nothing to gain
		{100 * mb, false}, // busy
		{200 * mb, false}, // still busy
		{201 * mb, true},  // the wave is over
		{202 * mb, false}, // given back already
		{210 * mb, false}, // busy
		{211 * mb, false}, // too little since
		{212 * mb, false},
		{217 * mb, false}, // busy
		{218 * mb, true},
	} {
		if due := idle.due(step.allocated); due != step.due {
			t.Errorf("step %d: due is %t", i, due)
		}
	}
}

func TestReturnMemoryEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*memoryTick+time.Millisecond)
		defer cancel()
		if err := returnMemory(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestAllocatedBytes(t *testing.T) {
	t.Parallel()
	before := allocatedBytes()
	kept := make([]byte, 1<<20)
	if grown := allocatedBytes() - before; grown < uint64(len(kept)) {
		t.Errorf("a megabyte more was allocated, but the figure grew by %d", grown)
	}
}
