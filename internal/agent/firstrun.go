package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/tutti-project/tutti/internal/agent/puppetrun"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// FirstRun is what came of the Puppet run that a node was joined with.
type FirstRun struct {
	Status   string         `json:"status"` // changed, unchanged, failed; unknown if Puppet did not run
	ExitCode int            `json:"exit_code"`
	Error    string         `json:"error,omitempty"`
	Metrics  map[string]int `json:"metrics,omitempty"`

	WithoutCode fleet.Environment `json:"without_code,omitempty"` // the node's, if nothing was deployed to it
}

// Failed says whether the run did not do what it should.
func (r FirstRun) Failed() bool { return r.Error != "" || r.Status == "failed" }

// RunFirst lets Puppet run once, now. What Puppet prints goes to says, in colours or without.
func RunFirst(ctx context.Context, puppet string, colours bool, says io.Writer) (FirstRun, error) {
	flags := []string{"--no-splay"} // it would be slept through
	if !colours {
		flags = append(flags, "--color", "false")
	}
	order := pxp.PuppetOrder{
		Input:         pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: flags}),
		Configuration: pxp.PuppetConfiguration{Puppet: puppet},
	}
	var out bytes.Buffer
	puppetrun.Main(ctx, bytes.NewReader(pxp.Data(order)), &out, says)
	var r pxp.PuppetResults
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return FirstRun{}, fault.Wrap(fault.Internal, err, "what came of the Puppet run cannot be read")
	}
	return FirstRun{Status: r.Status, ExitCode: r.ExitCode, Error: r.Error, Metrics: r.Metrics, WithoutCode: fleet.Absent(r.Stderr)}, nil
}
