package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/git"
	"github.com/tutti-project/tutti/internal/program/r10k"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// The bounds of what is fetched for one environment.
const (
	maxRepositoryBytes = 2 << 30
	maxModulesBytes    = 1 << 30 // in memory, where cells have namespaces
	fetchTime          = 10 * time.Minute
	modulesTime        = 10 * time.Minute
)

// openSources wires the deploys from git to their neighbours.
func openSources(ctx context.Context, p *parts, c settings.Config) error {
	key, err := p.data.Seal()
	if err != nil {
		return err
	}
	if key, err = key.Of("tutti secrets of code sources 1"); err != nil {
		return err
	}
	reaches, err := c.ProgramReaches()
	if err != nil {
		return err
	}
	kept, trees, private := p.data.Join("repositories"), p.data.Join("worktrees"), p.data.Join("r10k")
	for _, dir := range []string{trees, private} { // of a server that was killed
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("empty a directory for deploys from git: %w", err)
		}
	}
	for _, dir := range []string{kept, trees, private} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make a directory for deploys from git: %w", err)
		}
	}
	if err := removeKeys(kept); err != nil {
		return err
	}
	reach := reaches[settings.R10kProgram]
	reach.Hide = []string{p.data.Path}
	p.sources, err = source.Open(ctx, source.Parts{
		Store:        p.store.CodeSources,
		Sealer:       key,
		Repositories: repositories{kept},
		Modules: r10k.Resolver{
			Cells: p.cells, Reach: reach, Dir: private, Timeout: modulesTime, MemoryBytes: c.CompileMemoryBytes, MaxBytes: maxModulesBytes, MaxFiles: code.MaxFiles,
		},
		Deployer: sourceDeploys{p.deployments()},
		Blobs:    p.blobs,
		Dir:      trees,
		Log:      p.log.Logger,
	})
	return err
}

// removeKeys removes the keys that git needed when the server was killed.
func removeKeys(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "ssh-*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// repositories is source.Repositories: what is kept of each lies in a directory.
type repositories struct{ dir string }

// Check implements source.Repositories.
func (r repositories) Check(url string) (string, error) {
	if err := git.CheckURL(url); err != nil {
		return "", err
	}
	return git.Redact(url), nil
}

// Open implements source.Repositories.
func (r repositories) Open(s source.Source) source.Repository {
	return git.Mirror{
		Dir: filepath.Join(r.dir, s.Name), URL: s.Secrets.URL, Key: s.Secrets.Key, KnownHosts: s.Secrets.KnownHosts, Submodules: s.Submodules,
		MaxBytes: maxRepositoryBytes, Timeout: fetchTime,
	}
}

// Forget implements source.Repositories.
func (r repositories) Forget(name string) error {
	kept := filepath.Join(r.dir, name)
	return errors.Join(os.RemoveAll(kept), os.RemoveAll(kept+".known_hosts"))
}

// sourceDeploys is source.Deployer: what comes from git goes the way of every deploy.
type sourceDeploys struct{ deployments deployments }

// Deploy implements source.Deployer.
func (d sourceDeploys) Deploy(ctx context.Context, of code.Deployment) (code.Version, error) {
	version, _, err := d.deployments.Deploy(ctx, of, codecheck.Checked)
	return version, err
}

// Remove implements source.Deployer.
func (d sourceDeploys) Remove(ctx context.Context, env fleet.Environment) error {
	return d.deployments.RemoveEnvironment(ctx, env)
}
