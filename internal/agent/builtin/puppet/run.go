package puppet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// runInput is what runonce takes. What is not given is left to Puppet's own settings.
type runInput struct {
	Force            bool   `json:"force"`
	Noop             *bool  `json:"noop"`
	Tags             string `json:"tags"`
	Environment      string `json:"environment"`
	Splay            *bool  `json:"splay"`
	SplayLimit       *int   `json:"splaylimit"`
	UseCachedCatalog *bool  `json:"use_cached_catalog"`
}

// checkRun says what no schema can.
func checkRun(input jsontext.Value) error {
	var all map[string]jsontext.Value
	if json.Unmarshal(input, &all) != nil {
		return nil //nolint:nilerr // the schema says so
	}
	if _, given := all["server"]; given {
		return fault.New(fault.Invalid, "field server: Puppet of this node asks the server in its own settings; leave it out")
	}
	var in runInput
	if json.Unmarshal(input, &in) != nil {
		return nil //nolint:nilerr // the schema says so
	}
	if in.Force && (in.Splay != nil && *in.Splay || in.SplayLimit != nil) {
		return fault.New(fault.Invalid, "field force: it means no splay; leave out splay and splaylimit")
	}
	return nil
}

// prepare makes the order that pxp-module-puppet takes of it.
func (c Config) prepare(ctx context.Context, o orders.Order) (orders.Command, error) {
	var in runInput
	if err := json.Unmarshal(o.Params, &in); err != nil {
		return orders.Command{}, fault.Wrap(fault.Invalid, err, "the input is not what the action takes")
	}
	o.Params = pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: in.flags()})
	return c.Run(ctx, o)
}

func (in runInput) flags() []string {
	flags := []string{}
	choice := func(name string, value *bool) {
		switch {
		case value == nil:
		case *value:
			flags = append(flags, "--"+name)
		default:
			flags = append(flags, "--no-"+name)
		}
	}
	if in.Force {
		in.Splay = new(bool)
	}
	choice("noop", in.Noop)
	choice("splay", in.Splay)
	choice("use_cached_catalog", in.UseCachedCatalog)
	if in.SplayLimit != nil {
		flags = append(flags, "--splaylimit", strconv.Itoa(*in.SplayLimit))
	}
	if in.Tags != "" {
		flags = append(flags, "--tags", in.Tags)
	}
	if in.Environment != "" {
		flags = append(flags, "--environment", in.Environment)
	}
	return flags
}

// ran is what runonce gives.
type ran struct {
	Summary     string `json:"summary"`
	InitiatedAt int64  `json:"initiated_at,omitzero"` // 0: it did not begin
}

// runResults are the results of what a run left.
func runResults(o orders.Output) (jsontext.Value, error) {
	if o.Ended != "" {
		return nil, errors.New("was ended before Puppet was done")
	}
	var results pxp.PuppetResults
	if err := json.Unmarshal(o.Stdout, &results); err != nil {
		return nil, errors.New("returned no results - stderr: " + orders.ErrorText(o))
	}
	told := ran{Summary: summarize(results)}
	if at, err := time.Parse(time.RFC3339Nano, results.Time); err == nil {
		told.InitiatedAt = at.Unix()
	}
	if results.ErrorType != "" || results.Status == "failed" {
		return nil, &orders.Aborted{Message: told.Summary, Data: pxp.Data(told)}
	}
	return pxp.Data(told), nil
}

// summarize says in one line how a run ended.
func summarize(r pxp.PuppetResults) string {
	text := r.Error
	if len(r.Metrics) > 0 {
		text = fmt.Sprintf("Puppet ran in the environment %s: %s; %d of %s changed, %d failed", r.Environment, r.Status, r.Metrics["changed"],
			fault.Count(r.Metrics["total"], "resource"), r.Metrics["failed"])
		if r.Pending > 0 {
			text += fmt.Sprintf(", %d would change without noop", r.Pending)
		}
		if r.ErrorType != "" && r.ErrorType != pxp.AgentExitNonZero {
			text += "; " + r.Error
		}
	}
	if said := strings.TrimSpace(r.Stderr); said != "" && r.ErrorType != "" {
		text += fmt.Sprintf("; Puppet says: %.500s", strings.ReplaceAll(said, "\n", " "))
	}
	return text
}
