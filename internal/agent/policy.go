package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

const (
	policyName     = "policy.yaml"
	maxPolicyBytes = 1 << 20
)

// policy reads the policy's file; an empty path says that there is none. One that was named has
// to be there.
func (c Config) policy() (path string, text []byte, err error) {
	path = c.PolicyFile
	if path == "" {
		path = filepath.Join(c.Dir, policyName)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && c.PolicyFile == "" {
		return "", nil, nil
	}
	if err != nil {
		return path, nil, fault.New(fault.Invalid, "policy %s cannot be read: %v", path, cause(err))
	}
	defer func() { _ = file.Close() }()
	text, err = io.ReadAll(io.LimitReader(file, maxPolicyBytes+1))
	if err == nil && len(text) > maxPolicyBytes {
		err = fault.New(fault.Invalid, "policy %s has more than %d bytes", path, maxPolicyBytes)
	}
	return path, text, err
}

// policyOf is the policy in force.
func policyOf(c Config) (orders.Policy, error) {
	path, text, err := c.policy()
	if err != nil || path == "" {
		return orders.Policy{}, err
	}
	return orders.ParsePolicy(path, text)
}
