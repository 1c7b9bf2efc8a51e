package errandtest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/tutti-project/tutti/internal/errand"
	"github.com/tutti-project/tutti/internal/errand/errandtest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pxp"
)

func TestSpool(t *testing.T) {
	t.Parallel()
	errandtest.RunSpool(t, func(*testing.T) errandtest.Disk {
		m := &errandtest.Machine{}
		spool, _ := m.Boot()
		return errandtest.Disk{Spool: spool, Spoil: m.Spoil, Restart: func() errand.Spool {
			next, _ := m.Boot()
			return next
		}}
	})
}

func TestRunner(t *testing.T) {
	t.Parallel()
	errandtest.RunRunner(t, func(*testing.T) errandtest.Programs {
		var next errandtest.Ending
		m := &errandtest.Machine{Program: func(string, errand.Command) errandtest.Ending { return next }}
		spool, runner := m.Boot()
		return errandtest.Programs{
			Spool: spool, Runner: runner, Begun: func(*testing.T, string) {},
			Restart: func() (errand.Spool, errand.Runner) { return m.Boot() },
			Command: func(e errandtest.Ending) errand.Command {
				next = e
				return errand.Command{Path: "/bin/program"}
			},
		}
	})
}

func TestCache(t *testing.T) {
	t.Parallel()
	errandtest.RunCache(t, func(*testing.T) errandtest.Store {
		missing := pxp.FileSource{Filename: "missing", SHA256: "0"}
		return errandtest.Store{
			Cache:   &errandtest.Cache{Missing: map[string]error{"0": fault.New(fault.Unavailable, "Failed to download file with: it is missing")}},
			Missing: missing,
			Dir:     "/dir",
			Offer: func(filename, content string) pxp.FileSource {
				sum := sha256.Sum256([]byte(content))
				return pxp.FileSource{Filename: filename, SHA256: hex.EncodeToString(sum[:])}
			},
		}
	})
}
