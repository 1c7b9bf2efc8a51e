package machine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/orders/orderstest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func TestSpool(t *testing.T) {
	t.Parallel()
	orderstest.RunSpool(t, func(*testing.T) orderstest.Disk {
		m := &machine.Machine{}
		spool, _ := m.Boot()
		return orderstest.Disk{Spool: spool, Spoil: m.Spoil, Restart: func() orders.Spool {
			next, _ := m.Boot()
			return next
		}}
	})
}

func TestRunner(t *testing.T) {
	t.Parallel()
	orderstest.RunRunner(t, func(*testing.T) orderstest.Programs {
		var next machine.Ending
		m := &machine.Machine{Program: func(string, orders.Command) machine.Ending { return next }}
		spool, runner := m.Boot()
		return orderstest.Programs{
			Spool: spool, Runner: runner, Begun: func(*testing.T, string) {},
			Restart: func() (orders.Spool, orders.Runner) { return m.Boot() },
			Command: func(e machine.Ending) orders.Command {
				next = e
				return orders.Command{Path: "/bin/program"}
			},
		}
	})
}

func TestCache(t *testing.T) {
	t.Parallel()
	orderstest.RunCache(t, func(*testing.T) orderstest.Store {
		missing := pxp.FileSource{Filename: "missing", SHA256: "0"}
		return orderstest.Store{
			Cache:   &machine.Cache{Missing: map[string]error{"0": fault.New(fault.Unavailable, "Failed to download file with: it is missing")}},
			Missing: missing,
			Dir:     "/dir",
			Offer: func(filename, content string) pxp.FileSource {
				sum := sha256.Sum256([]byte(content))
				return pxp.FileSource{Filename: filename, SHA256: hex.EncodeToString(sum[:])}
			},
		}
	})
}
