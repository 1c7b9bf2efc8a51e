package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
)

// DefaultUser is whom untrusted code runs as, when the server is root and there is such a user.
const DefaultUser = "tutti-compile"

// Config says what cells a server wants.
type Config struct {
	Mode Mode
	User string // empty: DefaultUser, if there is one
	Dir  string // a directory of the server's own; the cell is tried out in it
	Hide string // the server's directory with Dir in it, which all of its cells hide; empty: Dir
}

// Keeper makes cells. A nil one makes none: programs are started as they are.
type Keeper struct {
	uid, gid int
	spaces   bool
	standing Standing
}

// built tells that there are cells.
func (k *Keeper) built() bool { return k != nil && k.standing.Mode != Off && k.standing.Seccomp }

// Standing says what the cells have.
func (k *Keeper) Standing() Standing {
	if k == nil {
		return Standing{Mode: Off}
	}
	return k.standing
}

// Open finds out which cells can be had here, and proves it: a program in one tries to read and to write what it must not.
func Open(ctx context.Context, c Config) (*Keeper, error) {
	k := &Keeper{standing: Standing{Mode: c.Mode}}
	if c.Mode == Off {
		return k, nil
	}
	var failures []error
	if !able {
		failures = append(failures, errors.New("this program has no cells on "+runtime.GOOS+"/"+runtime.GOARCH))
	}
	users, err := usersFor(c.User)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		for _, spaces := range []bool{true, false} {
			if k.built() || !able {
				break
			}
			k.uid, k.gid, k.spaces = u.uid, u.gid, spaces
			report, err := k.prove(ctx, c.Dir, cmp.Or(c.Hide, c.Dir))
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", k.wish(u), err))
				continue
			}
			k.standing.Landlock, k.standing.Seccomp, k.standing.Spaces, k.standing.User = report.Landlock, report.Seccomp, report.Spaces, u.name
		}
	}
	k.judge(failures)
	switch {
	case c.User != "" && k.standing.User != c.User && os.Geteuid() == 0:
		return nil, fault.New(fault.Unavailable, "code cannot be run as %s (compile_user): %s", c.User, inOneLine(failures))
	case c.Mode == Strict && k.lacking() != "":
		return nil, fault.New(fault.Unavailable, "compile_isolation is strict, and %s; it is without %s",
			k.lacking(), strings.Join(k.standing.Reasons(), "; without "))
	}
	return k, nil
}

// account is whom code may run as.
type account struct {
	name     string // empty: the server's own
	uid, gid int
}

// usersFor lists whom code may run as, best first.
func usersFor(name string) ([]account, error) {
	own := account{}
	if os.Geteuid() != 0 {
		if name != "" {
			if u, err := user.Lookup(name); err == nil && u.Uid == strconv.Itoa(os.Geteuid()) {
				return []account{own}, nil
			}
			return nil, fault.New(fault.Invalid, "setting compile_user: the server must be root to run code as %s", name)
		}
		return []account{own}, nil
	}
	wanted := name
	if wanted == "" {
		wanted = DefaultUser
	}
	found, err := user.Lookup(wanted)
	if err != nil {
		if name != "" {
			return nil, fault.New(fault.Invalid, "setting compile_user: there is no user %s; make one: useradd --system --no-create-home --shell /usr/sbin/nologin %s",
				name, name)
		}
		return []account{own}, nil
	}
	uid, _ := strconv.Atoi(found.Uid)
	gid, _ := strconv.Atoi(found.Gid)
	if uid == 0 || gid == 0 {
		return nil, fault.New(fault.Invalid, "setting compile_user: %s is root, or in its group", wanted)
	}
	return []account{{wanted, uid, gid}, own}, nil
}

// wish names what was tried.
func (k *Keeper) wish(u account) string {
	words := "a cell"
	if k.spaces {
		words += " with namespaces"
	} else {
		words += " without namespaces"
	}
	if u.name != "" {
		words += " as " + u.name
	}
	return words
}

// judge says in sentences what is missing.
func (k *Keeper) judge(failures []error) {
	s := &k.standing
	miss := func(part, format string, args ...any) {
		s.Missing = append(s.Missing, Lack{part, fmt.Sprintf(format, args...)})
	}
	if !k.built() {
		miss("cell", "any cell: code may do whatever the server may (%s)", inOneLine(failures))
		return
	}
	switch {
	case s.User != "" || os.Geteuid() != 0:
	case len(failures) > 0:
		miss("user", "a user of its own (%s)", inOneLine(failures))
	default:
		miss("user", "a user of its own (make the user %s, or name one with compile_user)", DefaultUser)
	}
	if !s.Spaces {
		miss("namespaces", "namespaces (%s): command lines of others are seen, files of the server's user can be made readable, a disk can be filled",
			inOneLine(failures))
	}
	switch {
	case s.Landlock == 0:
		miss("landlock", "Landlock (Linux 5.13 with lsm=landlock): what the server's system lets everybody read can be read")
	case s.Landlock < 4 && !s.Spaces:
		miss("landlock-tcp", "Landlock's rules for TCP (Linux 6.7): any address can be connected to")
	case s.Landlock < 4:
		miss("landlock-tcp", "Landlock's rules for TCP (Linux 6.7): an environment with compile_network may connect to any port")
	case s.Landlock < 6 && !s.Spaces:
		miss("landlock-signals", "Landlock's rules for signals (Linux 6.12): other processes of the same user can be ended")
	}
}

// lacking is why a strict server does not start; empty when it does.
func (k *Keeper) lacking() string {
	switch {
	case !k.built():
		return "no cell can be built"
	case os.Geteuid() == 0 && k.uid == 0:
		return "code would run as root"
	case k.standing.Landlock == 0:
		return "there is no Landlock"
	}
	return ""
}

func inOneLine(failures []error) string {
	if len(failures) == 0 {
		return "no reason is known"
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(errors.Join(failures...).Error(), "\n", "; ")), " ")
}

// proveTime bounds the test of a cell.
const proveTime = 30 * time.Second

// proof is run in a cell. It ends with 0 if it can do what it may, and nothing else.
const proof = `
if (: < "$1") 2>/dev/null; then exit 11; fi
if (echo x > "$1") 2>/dev/null; then exit 12; fi
(: < "$2") || exit 13
(echo x > "$3/x") || exit 14
exit 0`

var provenBy = map[int]string{
	11: "a file could be read that must not be", 12: "a file could be written that must not be",
	13: "a file could not be read that may be, perhaps because others may not pass the directories above the server's",
	14: "the private directory could not be written to",
}

// prove starts a program in a cell that tries what is forbidden. What is hidden must be what the server's cells hide: a directory
// around parent that only root may pass would else keep the other user from what it may read.
func (k *Keeper) prove(ctx context.Context, parent, hide string) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, proveTime)
	defer cancel()
	dir, err := os.MkdirTemp(parent, "cell-")
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	forbidden, allowed, private := filepath.Join(dir, "forbidden"), filepath.Join(dir, "allowed"), filepath.Join(dir, "private")
	for _, path := range []string{forbidden, allowed} {
		if err := os.WriteFile(path, []byte("x\n"), 0o644); err != nil { //nolint:gosec // the cell must keep it closed, not its mode
			return Report{}, err
		}
	}
	if err := k.Private(private); err != nil {
		return Report{}, err
	}
	k.standing.Seccomp = true // so that Start builds a cell
	defer func() { k.standing.Seccomp = false }()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", proof, "sh", forbidden, allowed, private) //nolint:gosec // our own script
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin"}, "/"
	p, err := k.Start(cmd, Spec{Read: []string{allowed}, Write: private, Hide: []string{hide}})
	if err != nil {
		if known, ok := errors.AsType[*fault.Error](err); ok && known.Err != nil {
			err = known.Err
		}
		return Report{}, err
	}
	err = p.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && provenBy[exit.ExitCode()] != "" {
		err = fmt.Errorf("%s (in %s)", provenBy[exit.ExitCode()], dir)
	}
	return p.Report(), err
}

// Private makes a directory that belongs to whoever code runs as, for Spec.Write.
func (k *Keeper) Private(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if k == nil || k.uid == 0 {
		return nil
	}
	return os.Chown(dir, k.uid, k.gid)
}

// Harden keeps other processes of the same user from looking into this one. It leaves a server alone that needs user namespaces:
// there the cells themselves see to it, and the kernel would not let us make any.
func (k *Keeper) Harden() error {
	if k.built() && k.spaces && os.Geteuid() != 0 {
		return nil
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
