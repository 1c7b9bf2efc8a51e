package server

import (
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
)

func TestLoadGate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gate loadGate
		load float64
		want compile.Room
	}{
		"next to nothing": {loadGate{8, 0.5}, 0.2, compile.Idle},
		"at the limit":    {loadGate{8, 0.5}, 0.5, compile.Idle},
		"busy":            {loadGate{8, 0.5}, 2, compile.Some},
		"too much":        {loadGate{8, 0.5}, 8.1, compile.Full},
		"never full":      {loadGate{0, 0.5}, 100, compile.Some},
		"always idle":     {loadGate{8, 0}, 7, compile.Idle},
		"no limits":       {loadGate{}, 100, compile.Idle},
	} {
		if got := tt.gate.room(tt.load); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
