package bus_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/hint/bus/bustest"
)

// process is a world within the process.
type process struct {
	hub bus.Local
	all []*bus.Member
}

func (p *process) Join(*testing.T) bus.Bus {
	m := p.hub.Join()
	p.all = append(p.all, m)
	return m
}

func (p *process) Cut(_ *testing.T, cut bool) {
	for _, m := range p.all {
		m.Cut(cut)
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(*testing.T) bustest.World { return &process{} })
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subscribed, subject string
		want                bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a.b", "a", false},
		{"a", "a.b", false},
		{"a.*", "a.b", true},
		{"a.*", "a.b.c", false},
		{"a.*", "a", false},
		{"*.b", "a.b", true},
		{"a.>", "a.b", true},
		{"a.>", "a.b.c", true},
		{"a.>", "a", false},
		{">", "a", true},
		{"a.*.c", "a.b.c", true},
		{"a.*.c", "a.b.d", false},
	} {
		if got := bus.Matches(c.subscribed, c.subject); got != c.want {
			t.Errorf("%s for %s: %t", c.subscribed, c.subject, got)
		}
	}
}
