package hook

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// NodeClassifier is Puppet's external node classifier: a program that gets a
// certname and prints YAML with classes, parameters and environment.
type NodeClassifier struct {
	runner *Runner
	path   string
}

// NodeClassifier returns the program at path.
func (r *Runner) NodeClassifier(path string) (*NodeClassifier, error) {
	if err := checkProgram(path); err != nil {
		return nil, err
	}
	return &NodeClassifier{runner: r, path: path}, nil
}

// Classification asks for a node, and returns the answer as JSON. Output that is
// no YAML is Invalid: asking again gives the same.
func (n *NodeClassifier) Classification(ctx context.Context, name fleet.Certname) (json.RawMessage, error) {
	ended, err := n.runner.run(ctx, n.path, string(name), nil)
	switch {
	case err != nil:
		return nil, err
	case ended.exit != 0:
		return nil, fault.New(fault.Unavailable, "the external node classifier %s ended with exit code %d for %s", n.path, ended.exit, name)
	case ended.cut:
		return nil, fault.New(fault.Invalid, "the external node classifier %s printed more than %d bytes for %s", n.path, n.runner.cfg.MaxOutputBytes, name)
	}
	answer, err := yamljson.ToJSON(ended.stdout)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the external node classifier %s did not print YAML for %s: %v", n.path, name, err)
	}
	return answer, nil
}
