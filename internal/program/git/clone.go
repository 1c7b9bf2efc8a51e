package git

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
	"github.com/tutti-project/tutti/internal/program/output"
)

// timeLimit bounds one clone when the caller sets no earlier deadline.
const timeLimit = 15 * time.Minute

// maxOutputBytes is how much of git's words is kept.
const maxOutputBytes = 64 << 10

// Clone makes dir (which must not exist, or be empty) a work tree of a
// repository at ref, with its submodules, and returns the commit. dir holds
// nothing after an error.
func Clone(ctx context.Context, repository, ref, dir string) (commit string, err error) {
	if err := errors.Join(checkURL(repository), checkRef(ref)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	if err := claim(dir); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	g := git{dir: dir, url: repository}
	if _, err := g.run(ctx, "init", "--quiet", "--template="); err != nil {
		return "", err
	}
	if commit, err = g.fetch(ctx, ref); err != nil {
		return "", err
	}
	if _, err := g.run(ctx, "checkout", "--quiet", "--detach", commit); err != nil {
		return "", err
	}
	return commit, g.submodules(ctx)
}

func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the directory for the clone cannot be made")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the directory for the clone cannot be read")
	}
	if len(entries) > 0 {
		return fault.New(fault.Conflict, "the directory for the clone is not empty")
	}
	return nil
}

// git runs commands in one work tree.
type git struct {
	dir   string
	url   string
	ssh   string      // options of ssh, quoted for a shell
	most  int         // bytes of output that count; 0: maxOutputBytes
	bound func() bool // is asked again and again whether what is fetched became too large; nil: nobody looks
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// fetch brings one commit. Not every server gives a commit by its name, and
// none by a part of it: then all branches and tags are needed.
func (g git) fetch(ctx context.Context, ref string) (string, error) {
	want := ref
	if want == "" {
		want = "HEAD"
	}
	_, err := g.run(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "origin", want)
	if err == nil {
		return g.resolve(ctx, "FETCH_HEAD")
	}
	if !commitForm.MatchString(ref) || ctx.Err() != nil {
		return "", err
	}
	_, err = g.run(ctx, "fetch", "--quiet", "--no-recurse-submodules", "origin",
		"+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
	if err != nil {
		return "", err
	}
	return g.resolve(ctx, ref)
}

func (g git) resolve(ctx context.Context, ref string) (string, error) {
	out, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		if ctx.Err() == nil {
			return "", fault.New(fault.Invalid, "the repository %s has no branch, tag or commit %q", Redact(g.url), ref)
		}
		return "", err
	}
	return strings.TrimSpace(out), nil
}

func (g git) submodules(ctx context.Context) error {
	if _, err := os.Lstat(filepath.Join(g.dir, ".gitmodules")); err != nil {
		return nil //nolint:nilerr // without the file there are none
	}
	_, err := g.run(ctx, "submodule", "--quiet", "update", "--init", "--recursive", "--depth=1")
	return err
}

// run runs one git command and returns its output.
func (g git) run(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"-C", g.dir, "-c", "core.hooksPath=/dev/null"}, args...)
	ctx, tooLarge, end := g.watch(ctx)
	defer end()
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // refs are checked, the URL is not among them
	cmd.Env = g.environment(os.Environ())
	stdout, stderr := &output.Beginning{Most: cmp.Or(g.most, maxOutputBytes)}, &output.Beginning{Most: maxOutputBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	group.Own(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case tooLarge():
		return "", errTooLarge
	case err == nil && g.most > 0 && stdout.Cut():
		return "", fault.New(fault.Invalid, "git %s of %s says more than %d bytes, and no more are read", args[4], Redact(g.url), g.most)
	case err == nil:
		return stdout.String(), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", fault.Wrap(fault.Invalid, err, "git is not installed here: apt-get install git")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fault.New(fault.Unavailable, "the repository %s did not come in time", Redact(g.url))
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	// The cause is left out: it may hold what the words were cleaned of.
	return "", fault.New(fault.Invalid, "git %s of %s: %s", args[4], Redact(g.url), g.clean(stderr.String()))
}

// environment adds what keeps git quiet and harmless. The URL goes this way and
// not into the repository's configuration, where its password would stay.
func (g git) environment(env []string) []string {
	var clean []string
	ssh := "GIT_SSH_COMMAND=ssh -o BatchMode=yes -o ConnectTimeout=30"
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case name == "GIT_SSH_COMMAND":
			ssh = entry // the operator knows better
		case strings.HasPrefix(name, "GIT_CONFIG_KEY"), strings.HasPrefix(name, "GIT_CONFIG_VALUE"):
		case name == "GIT_DIR", name == "GIT_WORK_TREE", name == "GIT_INDEX_FILE", name == "GIT_CONFIG_COUNT":
		case strings.HasPrefix(name, "TUTTI_"): // the servers' common key may be among them
		default:
			clean = append(clean, entry)
		}
	}
	protocols := "https:http:ssh:git"
	if strings.HasPrefix(g.url, "file://") {
		protocols += ":file"
	}
	return append(clean, ssh+g.ssh,
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never", "LC_ALL=C",
		"GIT_ALLOW_PROTOCOL="+protocols,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=remote.origin.url", "GIT_CONFIG_VALUE_0="+g.url)
}

// maxWords is how much of git's words an error shows.
const maxWords = 500

// clean takes credentials out of git's words and makes one line of them.
func (g git) clean(words string) string {
	words = strings.ReplaceAll(words, g.url, Redact(g.url))
	if u, err := url.Parse(g.url); err == nil && u.User != nil {
		secrets := []string{u.User.String()}
		if password, ok := u.User.Password(); ok {
			secrets = append(secrets, password, url.QueryEscape(password), url.PathEscape(password))
		}
		for _, secret := range secrets {
			if secret != "" && (u.Scheme != "ssh" || secret != u.User.Username()) {
				words = strings.ReplaceAll(words, secret, "***")
			}
		}
	}
	words = userInfo.ReplaceAllString(words, "$1***@")
	words = strings.Join(strings.Fields(words), " ")
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "..."
	}
	return words
}

// userInfo finds credentials in other URLs, such as those of submodules.
var userInfo = regexp.MustCompile(`([a-z]+://)[^/@\s'"]*:[^/@\s'"]*@`)
