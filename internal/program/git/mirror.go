package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Mirror is a directory that keeps what was fetched of a repository, so that the next fetch brings only what is new. Only the newest commit of
// a branch is fetched, without its history.
//
// A Mirror may list branches at any time; one Checkout at a time.
type Mirror struct {
	Dir        string // of its own: it is made if need be, and what is in it may be removed
	URL        string
	Key        string // a private key for ssh; empty: what the user of this program has
	KnownHosts string // lines of the file of this name; empty: a host is believed the first time, and held to its key from then on
	Submodules bool
	MaxBytes   int64         // of what is kept, and of what is checked out; 0: no bound
	Timeout    time.Duration // of one operation
}

// maxListBytes is how much of a list of branches is read: some 50 000 of them.
const maxListBytes = 4 << 20

var errTooLarge = errors.New("the repository is too large")

// Branches asks the repository for the newest commit of each branch.
func (m Mirror) Branches(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	g, leave, err := m.git(m.Dir)
	if err != nil {
		return nil, err
	}
	defer leave()
	g.most = maxListBytes
	out, err := g.run(ctx, "ls-remote", "--quiet", "--heads", "origin")
	if err != nil {
		return nil, err
	}
	heads := map[string]string{}
	for line := range strings.Lines(out) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok && commitForm.MatchString(commit) {
			heads[branch] = commit
		}
	}
	return heads, nil
}

// Checkout makes dir a work tree of the branch and returns its commit. dir is empty, or what another Checkout made of it: then only the files that
// differ are written, and what somebody else did there is undone. NotFound if the repository has no such branch.
//
// What is kept may have been damaged by a process that was killed: it is thrown away and fetched again before a failure counts.
func (m Mirror) Checkout(ctx context.Context, branch, dir string) (commit string, err error) {
	if err := errors.Join(checkURL(m.URL), checkRef(branch)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	_, err = os.Stat(filepath.Join(m.Dir, "HEAD"))
	kept := err == nil
	commit, err = m.checkout(ctx, branch, dir)
	if kept && err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		if err := errors.Join(os.RemoveAll(m.Dir), emptied(dir)); err != nil {
			return "", fault.Wrap(fault.Unavailable, err, "what is kept of the repository %s cannot be removed", Redact(m.URL))
		}
		commit, err = m.checkout(ctx, branch, dir)
	}
	if errors.Is(err, errTooLarge) {
		_ = os.RemoveAll(m.Dir) // it would be too large again
		return "", fault.New(fault.Invalid, "the branch %.80s of %s takes more than %d MiB, and no more are fetched", branch, Redact(m.URL), m.MaxBytes>>20)
	}
	return commit, err
}

func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

func (m Mirror) checkout(ctx context.Context, branch, dir string) (commit string, err error) {
	g, leave, err := m.git(m.Dir)
	if err != nil {
		return "", err
	}
	defer leave()
	if _, err := os.Stat(filepath.Join(m.Dir, "HEAD")); err != nil {
		if _, err := g.run(ctx, "init", "--quiet", "--bare", "--template="); err != nil {
			return "", err
		}
	}
	g.bound = m.tooLarge(m.Dir)
	kept := "refs/tutti/" + branch
	_, err = g.run(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "origin", "+refs/heads/"+branch+":"+kept)
	if err != nil {
		if ctx.Err() == nil && strings.Contains(err.Error(), "couldn't find remote ref") {
			return "", fault.New(fault.NotFound, "the repository %s has no branch %.80q", Redact(m.URL), branch)
		}
		return "", err
	}
	if commit, err = g.resolve(ctx, kept); err != nil {
		return "", err
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && !m.Submodules {
		if changed, err := m.change(ctx, commit, dir); changed || err != nil && ctx.Err() != nil {
			return commit, err
		}
	}
	if err := emptied(dir); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the directory for the work tree cannot be emptied")
	}
	return commit, m.fill(ctx, commit, dir)
}

// change makes a work tree of another commit one of this commit. It says no if the tree has to be made anew: its commit is not kept any more, or the
// attributes of files differ, which may be those of files that do not.
func (m Mirror) change(ctx context.Context, commit, dir string) (changed bool, err error) {
	g, leave, err := m.git(dir)
	if err != nil {
		return false, err
	}
	defer leave()
	attributes, err := g.run(ctx, "diff-tree", "-r", "--name-only", "HEAD", commit, "--", ":(glob)**/.gitattributes")
	if err != nil || attributes != "" {
		return false, err
	}
	g.bound = m.tooLarge(dir)
	if _, err = g.run(ctx, "checkout", "--quiet", "--force", "--detach", commit); err != nil {
		return false, err
	}
	_, err = g.run(ctx, "clean", "--quiet", "-ffdx") // also what .gitignore names, and other repositories
	return err == nil, err
}

// fill checks a commit out of what is kept.
func (m Mirror) fill(ctx context.Context, commit, dir string) error {
	g, leave, err := m.git(dir)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := g.run(ctx, "init", "--quiet", "--template="); err != nil {
		return err
	}
	info := filepath.Join(dir, ".git", "objects", "info")
	objects, err := filepath.Abs(filepath.Join(m.Dir, "objects"))
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(info, 0o700), os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o600)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the directory for the work tree cannot be written to")
	}
	g.bound = m.tooLarge(dir)
	if _, err := g.run(ctx, "checkout", "--quiet", "--detach", commit); err != nil {
		return err
	}
	if !m.Submodules {
		return nil
	}
	return g.submodules(ctx)
}

// git runs commands in dir; leave removes what they needed.
func (m Mirror) git(dir string) (g git, leave func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return g, nil, fault.Wrap(fault.Unavailable, err, "the directory for the repository cannot be made")
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return g, nil, fault.Wrap(fault.Unavailable, err, "the directory for the repository cannot be made")
	}
	options, leave, err := m.sshOptions()
	return git{dir: dir, url: m.URL, ssh: options}, leave, err
}

// sshOptions puts the key where ssh finds it, as long as it is needed.
func (m Mirror) sshOptions() (options string, leave func(), err error) {
	hosts, err := filepath.Abs(m.Dir + ".known_hosts")
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(hosts), "ssh-")
	if err != nil {
		return "", nil, fault.Wrap(fault.Unavailable, err, "the directory for the key cannot be made")
	}
	leave = func() { _ = os.RemoveAll(dir) }
	check := "accept-new"
	if m.KnownHosts != "" {
		hosts, check = filepath.Join(dir, "known_hosts"), "yes"
		err = os.WriteFile(hosts, []byte(m.KnownHosts+"\n"), 0o600)
	}
	options = " -o StrictHostKeyChecking=" + check + " -o UserKnownHostsFile=" + quoted(hosts)
	if m.Key != "" {
		key := filepath.Join(dir, "key")
		err = errors.Join(err, os.WriteFile(key, []byte(strings.TrimRight(m.Key, "\n")+"\n"), 0o600))
		options += " -o IdentitiesOnly=yes -o IdentityAgent=none -i " + quoted(key)
	}
	if err != nil {
		leave()
		return "", nil, fault.Wrap(fault.Unavailable, err, "the key cannot be put where ssh finds it")
	}
	return options, leave, nil
}

// quoted is a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// tooLarge tells whether a directory holds more than it may.
func (m Mirror) tooLarge(dir string) func() bool {
	if m.MaxBytes <= 0 {
		return nil
	}
	return func() bool {
		total := int64(0)
		err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil //nolint:nilerr // it was there a moment ago
			}
			if info, err := entry.Info(); err == nil {
				total += info.Size()
			}
			if total > m.MaxBytes {
				return errTooLarge
			}
			return nil
		})
		return errors.Is(err, errTooLarge)
	}
}

// lookEvery is how often the size of what is fetched is looked at.
const lookEvery = 250 * time.Millisecond

// watch ends the context when what is fetched becomes too large, and tells at the end whether it did. end waits for the last look.
func (g git) watch(ctx context.Context) (watched context.Context, tooLarge func() bool, end func()) {
	if g.bound == nil {
		return ctx, func() bool { return false }, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var found atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if g.bound() {
					found.Store(true)
					cancel(fmt.Errorf("stopped: %w", errTooLarge))
					return
				}
			}
		}
	}()
	end = func() { cancel(nil); <-ended }
	return ctx, func() bool { return found.Load() || g.bound() }, end
}
