package puppet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/agent/builtin"
)

// lock is what Puppet writes into agent_disabled.lock.
type lock struct {
	Message string `json:"disabled_message"`
}

// locked is what enable and disable give.
type locked struct {
	Status  string `json:"status"`
	Enabled bool   `json:"enabled"`
}

type disableInput struct {
	Message *string `json:"message"`
}

// usualMessage is what puppet agent --disable writes when nobody gives a reason.
const usualMessage = "reason not specified"

func (c Config) disable(ctx context.Context, in disableInput) (any, error) {
	path, err := c.lockfile(ctx)
	if err != nil {
		return nil, err
	}
	l := lock{usualMessage}
	if in.Message != nil {
		l.Message = *in.Message
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	switch err := create(path, text); {
	case errors.Is(err, fs.ErrExist):
		is, _ := lockMessage(path)
		return nil, refuse(false, "Puppet is disabled already: %s", is)
	case err != nil:
		return nil, refuse(true, "Puppet could not be disabled: %v", err)
	}
	return locked{"Puppet is disabled: " + l.Message, false}, nil
}

func (c Config) enable(ctx context.Context, _ nothing) (any, error) {
	path, err := c.lockfile(ctx)
	if err != nil {
		return nil, err
	}
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse(true, "Puppet is enabled already")
	case err != nil:
		return nil, refuse(false, "Puppet could not be enabled: %v", err)
	}
	return locked{"Puppet is enabled", true}, nil
}

func (c Config) lockfile(ctx context.Context) (string, error) {
	settings, err := c.settings(ctx)
	if err != nil {
		return "", err
	}
	path := settings["agent_disabled_lockfile"]
	if path == "" {
		return "", builtin.Abort("Puppet does not say where its agent's lock is (agent_disabled_lockfile)")
	}
	return path, nil
}

func refuse(enabled bool, format string, args ...any) error {
	aborted := builtin.Abort(format, args...)
	return builtin.AbortWith(locked{aborted.Error(), enabled}, "%s", aborted.Error())
}

// lockMode is what Puppet gives the file.
const lockMode = 0o644

// create makes a file at once with its content; fs.ErrExist: there is one.
func create(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(lockMode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
