package modules

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/output"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// maxErrandBytes bounds what Main is told: parameters and facts.
const maxErrandBytes = 2 * pxp.MaxParamsBytes

// Main runs a program by Choria's contract, as in says, and writes on out what became of it. Program and Main are in one group: whoever ends
// one ends the other.
func Main(in io.Reader, out io.Writer) error {
	var e errand
	if err := json.NewDecoder(io.LimitReader(in, maxErrandBytes)).Decode(&e); err != nil || len(e.Program) == 0 {
		return fault.New(fault.Invalid, "what is to be done cannot be read: %v", err)
	}
	text, said, err := e.perform(func(line []string) *exec.Cmd {
		return exec.Command(line[0], line[1:]...) //nolint:gosec,noctx // the operator's own executables; the group is ended
	})
	d := done{Stdout: readable(&said.stdout), Stderr: readable(&said.stderr)}
	var r reply
	switch {
	case err != nil:
		d.Problem = err.Error()
	case json.Unmarshal(text, &r) != nil:
		d.Problem = "its program's reply is not JSON of the right shape"
	default:
		d.Reply = &r
	}
	if d.Problem != "" && strings.TrimSpace(d.Stderr) != "" {
		d.Problem += fmt.Sprintf("; it says: %.500s", strings.TrimSpace(d.Stderr))
	}
	return json.NewEncoder(out).Encode(d)
}

// readable is what is kept of a stream, as text.
func readable(b *output.Beginning) string {
	if b.Cut() {
		return b.Text() + "…"
	}
	return b.Text()
}
