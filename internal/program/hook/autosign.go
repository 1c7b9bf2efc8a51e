package hook

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Autosign is an operator's autosign policy: a program that gets the certname as
// its argument and the request in PEM on standard input, and signs with exit code 0.
type Autosign struct {
	runner *Runner
	path   string
}

// Autosign returns the policy of the program at path.
func (r *Runner) Autosign(path string) (*Autosign, error) {
	if err := checkProgram(path); err != nil {
		return nil, err
	}
	return &Autosign{runner: r, path: path}, nil
}

// Decide asks the program. It fits pki.AutosignPolicy.Decide.
func (a *Autosign) Decide(ctx context.Context, name fleet.Certname, requestPEM []byte) (bool, error) {
	ended, err := a.runner.run(ctx, a.path, string(name), requestPEM)
	if err != nil {
		return false, err
	}
	a.runner.cfg.Log.DebugContext(ctx, "autosign program decided", "node", name, "program", a.path, "exit", ended.exit)
	return ended.exit == 0, nil
}
