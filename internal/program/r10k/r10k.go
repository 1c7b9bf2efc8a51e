// Package r10k resolves a Puppetfile by running r10k, which is Debian's package r10k.
//
// A Puppetfile is a Ruby program of whoever may push to the repository, and r10k runs it. So r10k runs in a cell (package cell), as code that is
// compiled does: it sees the Puppetfile and no other file of the server, has no key, and may connect to the ports that its Spec names. Its time,
// its memory and what it writes have bounds. What it installed comes back as an archive on its standard output, and is unpacked below the
// tree: a link or a path of the archive that leads out of the tree is refused.
//
// Nothing is kept between two runs: modules are fetched each time.
//
// # Errors
//
// Invalid when r10k is not installed, when the Puppetfile cannot be resolved (with r10k's own words, without passwords), or when there is too
// much of it; Unavailable when the time is over or no cell can be built.
//
// # Concurrency
//
// No state; callers use trees of their own. Whoever calls bounds how many run at once.
package r10k

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/program/output"
)

// Resolver resolves Puppetfiles.
type Resolver struct {
	Program string       // empty: r10k where programs are found
	Cells   *cell.Keeper // nil: it runs as the server does
	Reach   cell.Spec    // what r10k reaches besides the system
	Dir     string       // of the server's own, for private directories

	Timeout     time.Duration // of one Puppetfile
	MemoryBytes int64         // of all processes together; 0: no bound
	MaxBytes    int64         // of what is written meanwhile, and of the modules
	MaxFiles    int           // of the modules
}

// maxPuppetfile is the largest Puppetfile, in bytes.
const maxPuppetfile = 1 << 20

// script installs what the Puppetfile on standard input names, and gives it back as an archive on standard output. Its argument is r10k.
const script = `set -eu
cd "$HOME"
mkdir work
cat > work/Puppetfile
printf -- '---\ncachedir: "%s/cache"\n' "$HOME" > r10k.yaml
cd work
"$1" puppetfile install --config ../r10k.yaml --puppetfile Puppetfile >&2 </dev/null
rm -rf ../cache
exec tar --create --file=- --exclude=.git --exclude=./Puppetfile --format=posix .
`

// Install adds the modules of a tree's Puppetfile to the tree, if it has one.
func (r Resolver) Install(ctx context.Context, tree string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the work tree cannot be opened")
	}
	defer func() { _ = root.Close() }()
	puppetfile, err := read(root)
	if puppetfile == nil || err != nil {
		return err
	}
	program, err := exec.LookPath(cmp.Or(r.Program, "r10k"))
	if err != nil {
		return &fault.Error{
			Kind: fault.Invalid, Detail: "the repository has a Puppetfile, and r10k is not installed on the server", Err: err,
			Hint: "apt-get install r10k there, or add the source again with --no-puppetfile and --replace, and keep the modules in the repository",
		}
	}
	return r.run(ctx, program, puppetfile, root)
}

// read returns the Puppetfile; nil for none.
func read(root *os.Root) ([]byte, error) {
	info, err := root.Lstat("Puppetfile")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxPuppetfile) {
		return nil, fault.New(fault.Invalid, "the Puppetfile is no file of at most %d bytes", maxPuppetfile)
	}
	var text []byte
	if err == nil {
		text, err = root.ReadFile("Puppetfile")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the Puppetfile cannot be read")
	}
	return text, nil
}

// grace is how long a killed program's pipes may stay open.
const grace = 5 * time.Second

// maxWords is how much of r10k's words is kept.
const maxWords = 16 << 10

func (r Resolver) run(ctx context.Context, program string, puppetfile []byte, root *os.Root) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	outer, err := os.MkdirTemp(r.Dir, "r10k-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "no directory could be made for r10k")
	}
	defer func() { _ = os.RemoveAll(outer) }()
	home := filepath.Join(outer, "home")
	if err := r.Cells.Private(home); err != nil {
		return fault.Wrap(fault.Unavailable, err, "no directory could be made for r10k")
	}
	reach := r.Reach
	reach.Run, reach.Write = append(append([]string{}, reach.Run...), program), home
	reach.Read = append(append([]string{}, reach.Read...), "/var/lib/gems")
	reach.Limits.ScratchBytes, reach.Limits.FileBytes = r.MaxBytes, r.MaxBytes
	words := &output.Beginning{Most: maxWords}
	archive, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "no pipe could be made for r10k")
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script, "sh", program) //nolint:gosec // our own script
	cmd.Env, cmd.Dir = environment(home), "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(puppetfile), theirs, words, grace
	process, err := r.Cells.Start(cmd, reach)
	if err = errors.Join(err, theirs.Close()); err != nil {
		_ = archive.Close()
		return fault.Wrap(fault.Unavailable, err, "r10k cannot be started: %s", cmp.Or(fault.Detail(err), err.Error()))
	}
	full := r.watch(ctx, process)
	defer context.AfterFunc(ctx, func() { _ = archive.SetReadDeadline(time.Now().Add(grace)) })()
	unpacked := r.unpack(archive, root)
	if unpacked != nil {
		process.Kill()
	}
	_ = archive.SetReadDeadline(time.Now().Add(grace)) // something that r10k left behind may hold the other end
	_, _ = io.Copy(io.Discard, archive)
	err = process.Wait()
	_ = archive.Close()
	switch {
	case full():
		return fault.New(fault.Invalid, "r10k took more than %d MiB of memory and was stopped", r.MemoryBytes>>20)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.New(fault.Unavailable, "r10k was stopped: it did not end within %s", r.Timeout)
	case ctx.Err() != nil:
		return ctx.Err()
	case fault.Of(unpacked) != fault.Internal:
		return unpacked
	case err != nil:
		return fault.New(fault.Invalid, "the Puppetfile cannot be resolved: %s", said(words.Text()))
	case unpacked != nil:
		return fault.Wrap(fault.Invalid, unpacked, "what r10k installed cannot be taken over: %s", said(unpacked.Error()))
	}
	return nil
}

// lookEvery is how often the memory is looked at.
const lookEvery = time.Second

// watch ends a process that takes too much memory; the function that it returns ends the watching and tells whether it did.
func (r Resolver) watch(ctx context.Context, p *cell.Process) func() bool {
	watched, stop := context.WithCancel(ctx)
	told := make(chan bool, 1)
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				told <- false
				return
			case <-tick.C:
				if r.MemoryBytes > 0 && p.Resident(p.Program()) > r.MemoryBytes {
					p.Kill()
					told <- true
					return
				}
			}
		}
	}()
	return func() bool { stop(); return <-told }
}

// environment is all that r10k sees of ours: proxies, unless their URL has a password.
func environment(home string) []string {
	env := []string{
		"LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "TMPDIR=" + home,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_SSH_COMMAND=ssh -o BatchMode=yes",
	}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "TZ"} {
		if value, ok := os.LookupEnv(name); ok && !strings.Contains(value, "@") {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// shownWords is how much of what r10k says an error shows.
const shownWords = 1000

var userInfo = regexp.MustCompile(`([a-z+]+://)[^/@\s'"]*@`)

// said makes one line of what r10k says, without users and passwords in URLs. Its end says most.
func said(words string) string {
	words = strings.Join(strings.Fields(userInfo.ReplaceAllString(words, "$1***@")), " ")
	if len(words) > shownWords {
		words = "..." + strings.ToValidUTF8(words[len(words)-shownWords:], "")
	}
	return words
}
