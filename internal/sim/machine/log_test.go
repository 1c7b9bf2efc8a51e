package machine_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/agent/events/eventstest"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func TestLog(t *testing.T) {
	t.Parallel()
	eventstest.RunLog(t, func(*testing.T) eventstest.Backend { return backend(machine.NewLog()) })
}

func backend(l *machine.Log) eventstest.Backend {
	return eventstest.Backend{Log: l, Begin: func(run string) eventstest.Writer { return writer{l, run} }}
}

type writer struct {
	log *machine.Log
	run string
}

func (w writer) Write(events ...pxp.RunEvent) { w.log.Write(w.run, false, events...) }
func (w writer) Over()                        { w.log.Write(w.run, true) }
