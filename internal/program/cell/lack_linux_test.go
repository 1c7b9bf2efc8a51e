//go:build amd64 || arm64

package cell

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
)

// lacks is the variable that names what this process and those below it are to do without, as on an older kernel; "here" follows when that is so.
const lacks = "TUTTI_TEST_LACKS"

// become starts this program anew without what lacks names.
func become() {
	what := os.Getenv(lacks)
	if what == "" || strings.HasSuffix(what, " here") {
		return
	}
	runtime.LockOSThread() // the filter is this thread's, and what it becomes has it
	if err := lose(strings.Contains(what, "namespaces")); err != nil {
		panic(err)
	}
	if err := os.Setenv(lacks, what+" here"); err != nil {
		panic(err)
	}
	panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// lose makes the kernel know no Landlock, and give no namespaces.
func lose(namespaces bool) error {
	stmt := func(code uint16, yes, no uint8, k uint32) unix.SockFilter {
		return unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k}
	}
	const load, equal, set, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{
		stmt(load, 0, 0, 0), // the number of the call
		stmt(equal, 0, 1, unix.SYS_LANDLOCK_CREATE_RULESET), stmt(answer, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
	}
	if namespaces {
		program = append(program,
			stmt(equal, 0, 1, unix.SYS_CLONE3), stmt(answer, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
			stmt(equal, 0, 3, unix.SYS_CLONE), stmt(load, 0, 0, 16), // its flags
			stmt(set, 0, 1, unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWUSER), stmt(answer, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
	}
	program = append(program, stmt(answer, 0, 0, unix.SECCOMP_RET_ALLOW))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, 1, 0, uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return errno
	}
	return nil
}

// without runs the calling test again in a process that lacks something, and tells that this is that process.
func without(t *testing.T, what string) bool {
	t.Helper()
	if os.Getenv(lacks) == what+" here" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), lacks+"="+what)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("without %s: %v\n%s", what, err, out)
	}
	return false
}

// someone is a user for code, where there can be one.
func someone() string {
	if os.Geteuid() == 0 {
		return "nobody"
	}
	return ""
}

// Without Landlock a strict server does not start, and another one says that it has none.
func TestNoLandlock(t *testing.T) {
	t.Parallel()
	if !without(t, "Landlock") {
		return
	}
	_, err := Open(t.Context(), Config{Mode: Strict, Dir: t.TempDir(), User: someone()})
	if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "there is no Landlock") {
		t.Errorf("strict: %v", err)
	}
	k := opened(t, Config{User: someone()})
	if s := k.Standing(); s.Landlock != 0 || !slices.Equal(s.Parts(), []string{"landlock"}) {
		t.Errorf("best effort: %+v", s)
	}
}

// A guard that restricts nothing is found out by a read that had to fail: there is no cell then, and a strict server does not start.
func TestABrokenGuardIsFoundOut(t *testing.T) {
	t.Parallel()
	if !without(t, "Landlock and namespaces") {
		return
	}
	const reason = "a file could be read that must not be"
	_, err := Open(t.Context(), Config{Mode: Strict, Dir: t.TempDir()})
	if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "no cell can be built") || !strings.Contains(err.Error(), reason) {
		t.Errorf("strict: %v", err)
	}
	k, err := Open(t.Context(), Config{Mode: BestEffort, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if s := k.Standing(); k.built() || !slices.Equal(s.Parts(), []string{"cell"}) || !strings.Contains(s.Reasons()[0], reason) {
		t.Errorf("best effort: %+v", s)
	}
}
