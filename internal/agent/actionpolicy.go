package agent

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/agent/actionpolicy"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

// maxPolicyFiles bounds the files of a directory of action policies.
const maxPolicyFiles = 1000

// actionPolicies reads the directory of action policies. With a set that can be used there may be an error all the same: it says which files
// deny everything. usable is false when the directory itself cannot be read.
func (c Config) actionPolicies() (set actionpolicy.Set, usable bool, err error) {
	if c.ActionPolicies == "" {
		return set, true, nil
	}
	entries, err := os.ReadDir(c.ActionPolicies)
	if err != nil {
		return set, false, fault.New(fault.Invalid, "action_policies %s cannot be read: %v", c.ActionPolicies, cause(err))
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if !actionpolicy.IsFile(entry.Name()) {
			continue
		}
		if len(files) == maxPolicyFiles {
			return set, false, fault.New(fault.Invalid, "action_policies %s has more than %d files", c.ActionPolicies, maxPolicyFiles)
		}
		path := filepath.Join(c.ActionPolicies, entry.Name())
		if files[entry.Name()], err = readPolicy(path); err != nil {
			return set, false, fault.New(fault.Invalid, "policy %s cannot be read: %v", path, cause(err))
		}
	}
	set, err = actionpolicy.Load(c.ActionPolicies, files)
	return set, true, err
}

// readPolicy reads as much of a file as shows that it is too large.
func readPolicy(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, actionpolicy.MaxBytes+1))
}

// rules are the action policies, and how this node is known to them. They implement orders.Rules.
type rules struct {
	set     actionpolicy.Set
	facts   func() []byte
	classes func() []string
}

// Allow implements orders.Rules.
func (r rules) Allow(caller, module, action string) (allowed bool, why string) {
	if !r.set.Narrows(module) {
		return true, ""
	}
	return r.set.Allow(module, actionpolicy.Request{Caller: caller, Action: action, Facts: r.facts(), Classes: r.classes()})
}

// newRules are those of the directory of action policies; nil: there is none.
func (d *daemon) newRules(ctx context.Context) (orders.Rules, error) {
	set, usable, err := d.actionPolicies()
	switch {
	case !usable:
		return nil, err
	case d.ActionPolicies == "":
		return nil, nil //nolint:nilnil // no rules are no error
	case err != nil:
		d.log.ErrorContext(ctx, "action policies are broken", "err", err)
	}
	asker := d.asker()
	if asker.Puppet, err = findPuppet(d.Puppet); err == nil {
		limited, cancel := context.WithTimeout(ctx, puppetTime)
		defer cancel()
		_, err = asker.Settings(limited)
	}
	if err != nil {
		d.log.WarnContext(ctx, "Puppet does not tell where the classes of this node are; action policies that name classes deny", "err", err)
	}
	return rules{set: set, facts: func() []byte { return d.facts.keeping().Values }, classes: d.knownClasses}, nil
}
