package sim

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// input is what every simulated task understands, whatever it is called.
type input struct {
	Sleep    float64 `json:"sleep"`    // seconds until it ends
	ExitCode int     `json:"exitcode"` // how
	Bytes    int     `json:"bytes"`    // how much it writes
}

// maxOutputBytes bounds what a simulated task writes.
const maxOutputBytes = 8 << 20

// task answers with the parameters that it got. Some it obeys.
func task(host, name string, params []byte) effect {
	var in input
	_ = json.Unmarshal(params, &in) // those of another type are not for us
	e := effect{takes: time.Duration(min(max(in.Sleep, 0), maxNumber) * float64(time.Second)), exitCode: in.ExitCode & 0xff}
	if in.Bytes > 0 {
		const line = "a line of a simulated task's output, as long as many are; there are more of them\n"
		e.stdout = strings.Repeat(line, min(in.Bytes, maxOutputBytes)/len(line)+1)
		return e
	}
	given := json.RawMessage(params)
	if !json.Valid(params) {
		given = json.RawMessage("{}")
	}
	text, err := json.Marshal(map[string]any{"node": host, "simulated": name, "parameters": given})
	if err != nil {
		return effect{stderr: err.Error(), exitCode: 1}
	}
	e.stdout = string(text) + "\n"
	return e
}

// script prints how it was called; a first argument that is a number is its exit code.
func script(host, name string, args []string) effect {
	return effect{stdout: strings.Join(append([]string{host, name}, args...), " ") + "\n", exitCode: int(number(args, 0)) & 0xff}
}

// program is what a program does on a node: its path tells what it is.
func (n *node) program(place string, c orders.Command) machine.Ending {
	e := n.effect(path.Base(place), c)
	n.fleet.cfg.Recorder.begin(Execution{n.name, path.Base(place)}, e.exitCode)
	return machine.Ending{After: e.takes, Exit: e.exitCode, Stdout: e.stdout, Stderr: e.stderr}
}

func (n *node) effect(transaction string, c orders.Command) effect {
	switch {
	case c.Path == puppetPath && n.fleet.cfg.Catalogs != "":
		return n.puppetRun(transaction, c)
	case c.Path == puppetPath:
		return puppetRun(transaction)
	case c.Path == actionPath:
		return n.act(c.Args, c.Input)
	case c.Path == shellPath:
		return shell(n.name, c.Args[len(c.Args)-1])
	case len(c.Input) > 0 || len(c.Env) > 0:
		return task(n.name, path.Base(c.Path), c.Input)
	default:
		return script(n.name, path.Base(c.Path), c.Args)
	}
}

// Names of a simulated node's shell, and of the program that runs Puppet.
const (
	shellPath  = "/simulated/sh"
	puppetPath = "/simulated/puppet-run"
)

// modules are the very modules of an agent, on programs that are made up.
func modules() []orders.Module {
	return orders.Modules(orders.Node{OS: "linux", Shell: []string{shellPath, "-c"}, PuppetRun: []string{puppetPath}, Cache: &machine.Cache{}})
}

// puppetRun prints the results of a Puppet run. What comes of it depends on its transaction: most
// find nothing to change, some change something, few fail.
func puppetRun(transaction string) effect {
	hash := fnv.New32a()
	_, _ = fmt.Fprint(hash, transaction)
	luck := int(hash.Sum32() % 100)
	e := effect{takes: time.Duration(50+10*luck) * time.Millisecond}
	r := pxp.PuppetResults{
		Kind: "apply", Time: time.Now().UTC().Format(time.RFC3339Nano), TransactionUUID: uuid.NewString(), Environment: "production", Version: 1,
		Status: "unchanged", Metrics: map[string]int{"total": 240, "changed": 0, "failed": 0, "skipped": 0, "out_of_sync": 0},
	}
	switch {
	case luck < 3:
		r.Status, r.ExitCode, e.exitCode = "failed", 1, 1
		r.Metrics["failed"], r.Metrics["out_of_sync"] = 1, 1
		r.ErrorType, r.Error = pxp.AgentExitNonZero, "Puppet agent exited with a non 0 exitcode"
	case luck < 20:
		r.Status = "changed"
		r.Metrics["changed"], r.Metrics["out_of_sync"] = 1+luck%5, 1+luck%5
	}
	e.stdout = string(pxp.Data(r))
	return e
}
