package sourcetest

import (
	"context"
	"crypto/sha1" //nolint:gosec // git names commits so
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Repositories is one repository, whatever its URL: each branch has files.
type Repositories struct {
	mu       sync.Mutex
	branches map[string]map[string]string
	err      error
	Hold     chan struct{} // a checkout waits until it can take something out of it; nil: it does not wait
	Began    chan string   // is told of each checkout; nil: nobody is
	Looks    int
}

var _ source.Repositories = (*Repositories)(nil)

// Push makes a branch have these files, and returns the commit.
func (r *Repositories) Push(branch string, files map[string]string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.branches == nil {
		r.branches = map[string]map[string]string{}
	}
	r.branches[branch] = files
	return commitOf(files)
}

// Drop deletes a branch.
func (r *Repositories) Drop(branch string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.branches, branch)
}

// Fail makes everything fail from now on; nil: nothing any more.
func (r *Repositories) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func commitOf(files map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&text, "%q %q\n", name, files[name])
	}
	return fmt.Sprintf("%x", sha1.Sum([]byte(text.String()))) //nolint:gosec // see above
}

// Check implements source.Repositories.
func (r *Repositories) Check(url string) (string, error) {
	if url == "" {
		return "", fault.New(fault.Invalid, "the repository has no URL")
	}
	_, after, found := strings.Cut(url, "@")
	if !found {
		after = url
	}
	return after, nil
}

// Open implements source.Repositories.
func (r *Repositories) Open(source.Source) source.Repository { return r }

// Forget implements source.Repositories.
func (r *Repositories) Forget(string) error { return nil }

// Branches implements source.Repository.
func (r *Repositories) Branches(context.Context) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Looks++
	heads := map[string]string{}
	for branch, files := range r.branches {
		heads[branch] = commitOf(files)
	}
	return heads, r.err
}

// Checkout implements source.Repository.
func (r *Repositories) Checkout(ctx context.Context, branch, dir string) (string, error) {
	if r.Began != nil {
		r.Began <- branch
	}
	if r.Hold != nil {
		select {
		case <-r.Hold:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	files, there := r.branches[branch]
	if !there || r.err != nil {
		if r.err != nil {
			return "", r.err
		}
		return "", fault.New(fault.NotFound, "there is no branch %s", branch)
	}
	if err := empty(dir); err != nil {
		return "", err
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return "", err
		}
		if target, link := strings.CutPrefix(text, "-> "); link {
			if err := os.Symlink(target, path); err != nil {
				return "", err
			}
		} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return commitOf(files), nil
}

// empty removes what another checkout left.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// Deployer remembers what was deployed.
type Deployer struct {
	mu       sync.Mutex
	deployed []code.Deployment
	removed  []fleet.Environment
	err      error
}

var _ source.Deployer = (*Deployer)(nil)

// Refuse makes every deploy fail from now on; nil: none any more.
func (d *Deployer) Refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// Deploy implements source.Deployer.
func (d *Deployer) Deploy(_ context.Context, of code.Deployment) (code.Version, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return code.Version{}, d.err
	}
	d.deployed = append(d.deployed, of)
	return code.Version{ID: fleet.DigestOf([]byte(of.Commit)), Environment: of.Environment}, nil
}

// Remove implements source.Deployer.
func (d *Deployer) Remove(_ context.Context, env fleet.Environment) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	d.removed = append(d.removed, env)
	return nil
}

// Deployed lists what was deployed, the first one first.
func (d *Deployer) Deployed() []code.Deployment {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.deployed)
}

// Removed lists the environments that were deleted.
func (d *Deployer) Removed() []fleet.Environment {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.removed)
}

// Modules is source.Modules: what Install does.
type Modules func(dir string) error

// Install implements source.Modules.
func (m Modules) Install(_ context.Context, dir string) error {
	if m == nil {
		return nil
	}
	return m(dir)
}

// Seals is source.Sealer: it seals so that tests can see that it was done.
type Seals struct{}

// Seal implements source.Sealer.
func (Seals) Seal(plain []byte) ([]byte, error) {
	sealed := slices.Clone(plain)
	for i := range sealed {
		sealed[i] ^= 0x5a
	}
	return sealed, nil
}

// Open implements source.Sealer.
func (s Seals) Open(sealed []byte) ([]byte, error) { return s.Seal(sealed) }
