package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tutorial, command by command in one shell, as somebody types it who has a checkout and Debian's packages: a server, three
// nodes whose Puppet is real, a mistake, a release to all, one that is stopped on its way, and back.
func TestTheTutorial(t *testing.T) {
	begin(t, 180)
	text, err := os.ReadFile(filepath.Join(docs, "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```sh\nmake deps build\nexport PATH=$PWD/bin:$PATH TUTTI_DATA=$PWD/tutorial/data\n```") {
		t.Error("the two commands before the tutorial are others: this test does what they do")
	}
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(checkout, "docs"), filepath.Join(dir, "docs")); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(text), "localhost:8140", fmt.Sprintf("localhost:%d", freePort(t)))
	if strings.Count(page, "\n$ ") < 45 {
		t.Errorf("the tutorial has %d commands: some are lost", strings.Count(page, "\n$ "))
	}
	sh := newShell(t, dir, "PATH="+filepath.Dir(binary)+":"+shims+":"+os.Getenv("PATH"), "TUTTI_DATA="+filepath.Join(dir, "tutorial/data"),
		"HOME="+t.TempDir(), "LANG=C.UTF-8")
	sh.follows("tutorial.md", page)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("what is left: %v, %v", left, err)
	}
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// shell is one bash that commands are typed into, one after the other.
type shell struct {
	t      *testing.T
	in     io.Writer
	out    *bufio.Reader
	errors string
}

// newShell starts one that ends with the test, with all that it started.
func newShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	s := &shell{t: t, errors: filepath.Join(t.TempDir(), "stderr")}
	problems, err := os.Create(s.errors)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "--norc") // ended below, with its children
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.SysProcAttr = dir, append(cleanEnv(), env...), problems, &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
		if !within(30*time.Second, func() bool { return syscall.Kill(-cmd.Process.Pid, 0) != nil }) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		_ = problems.Close()
	})
	s.in, s.out = in, bufio.NewReader(out)
	return s
}

// follows types every command of a page, which prints what the page says; … stands for anything.
func (s *shell) follows(page, text string) {
	s.t.Helper()
	for block := range strings.SplitSeq(text, "```\n") {
		if !strings.HasPrefix(block, "$ ") {
			continue
		}
		for command := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
			line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n"), "\n")
			began := time.Now()
			got, code := s.types(line)
			if testing.Verbose() {
				s.t.Logf("%s: $ %s (%s)", page, line, time.Since(began).Round(time.Millisecond))
			}
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", "(?s:.*)") + "$"
			if code != 0 || !regexp.MustCompile(pattern).MatchString(got) {
				problems, _ := os.ReadFile(s.errors)
				s.t.Fatalf("%s: $ %s (exit code %d)\nprints\n%s\n%s\nthe page says\n%s", page, line, code, got, tail(string(problems), 3000), want)
			}
		}
	}
}

// types has the shell do a command line, and returns what it printed and how it ended.
func (s *shell) types(line string) (printed string, code int) {
	s.t.Helper()
	const end = "the command has ended with "
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s%%d\\n' $?\n", line, end); err != nil {
		s.t.Fatal(err)
	}
	var out strings.Builder
	for {
		text, err := s.out.ReadString('\n')
		if err != nil {
			problems, _ := os.ReadFile(s.errors)
			s.t.Fatalf("$ %s: the shell ended: %v\n%s\n%s", line, err, out.String(), tail(string(problems), 3000))
		}
		if rest, ok := strings.CutPrefix(text, end); ok {
			if _, err := fmt.Sscan(rest, &code); err != nil {
				s.t.Fatal(err)
			}
			return strings.TrimSuffix(strings.TrimSuffix(out.String(), "\n"), "\n"), code
		}
		out.WriteString(text)
	}
}
