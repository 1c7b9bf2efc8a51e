package e2e_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Shells complete what the server knows: bash, zsh and fish, each as somebody types at a terminal. What is offered for each noun is asked as
// the shells ask. In the end the server is away, and nothing is offered, without a word and in time.
func TestShellsComplete(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "list", "--autosign-list", "*.example.test")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "code", "manifests", "site.pp"), "notify { 'hello': }\n")
	for _, name := range []string{"production", "staging"} {
		s.tutti(t, "code", "deploy", name, filepath.Join(dir, "code"))
	}
	if err := s.checkIn("web-1.example.test", map[string]any{"story_noop": true, "rack": "r9", "os": map[string]any{"family": "Debian"}}); err != nil {
		t.Fatal(err)
	}
	s.try(t, "agent", "join", s.url, "--certname", "stranger.other", "--dir", filepath.Join(dir, "agent"), "--ca-file", filepath.Join(s.data, "ca/ca_crt.pem"),
		"--wait", "0")
	s.tutti(t, "role", "create", "web-team", "--grant", "node:read")
	s.tutti(t, "user", "create", "web-1.example.test", "--role", "web-team", "--node")
	s.tutti(t, "group", "create", "Web servers", "--pin", "web-1.example.test")
	s.tutti(t, "token", "create", "ci-token")
	version := regexp.MustCompile(`[0-9a-f]{64}`).FindString(s.tutti(t, "code", "versions", "production", "-o", "json"))
	report := strings.Fields(s.tutti(t, "report", "list", "-o", "name"))[0]

	offered := map[string]string{
		"node show we":                         "web-1.example.test",
		"catalog show ":                        "web-1.example.test",
		"node list --environment ":             "production,staging",
		"code versions st":                     "staging",
		"code remove ":                         "production,staging",
		"ca sign ":                             "stranger.other",
		"ca revoke web":                        "web-1.example.test",
		"report show ":                         report,
		"compile verify --version ":            version,
		"user show web":                        "web-1.example.test",
		"role show web":                        "web-team",
		"user edit a --add-role viewer,web":    "viewer,web-team",
		"group show W":                         "Web servers",
		"group create x --parent W":            "Web servers",
		"fact values os.f":                     "os.family",
		"fact show web-1.example.test ra":      "rack",
		"resource list No":                     "Notify",
		"resource list no":                     "notify",
		"token revoke ci":                      "ci-token",
		"run web-1.example.test,we":            "web-1.example.test,web-1.example.test",
		"code deploy production x --engine sy": "system",
		"node list -o c":                       "csv",
	}
	for line, want := range offered {
		if got := s.offers(t, line); !slices.Equal(got, strings.Split(want, ",")) && strings.Join(got, ",") != want {
			t.Errorf("tutti %s: offers %q, want %s", line, got, want)
		}
	}
	for name, shell := range map[string]struct {
		args  []string
		setUp string
	}{
		"bash": {[]string{"bash", "--norc", "--noprofile", "-i"}, "source /usr/share/bash-completion/bash_completion; source <(tutti completion bash)"},
		"zsh":  {[]string{"zsh", "-f", "-i"}, "autoload -Uz compinit && compinit -u -D && source <(tutti completion zsh)"},
		"fish": {[]string{"fish", "--no-config", "-i"}, "tutti completion fish | source"},
	} {
		typist := openTerminal(t, s, shell.args...)
		typist.types(shell.setUp + "; echo set''up\n")
		typist.sees(t, name, "setup")
		typist.types("tutti node show we\t")
		typist.sees(t, name, "we"+"b-1.example.test")
		typist.types("-o js")
		typist.types("on\n")
		typist.sees(t, name, `"name"`)
		typist.types("tutti node list -o cs\t")
		typist.sees(t, name, "csv")
		typist.types("\n")
		typist.sees(t, name, "web-1.example.test,")
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if got := s.offers(t, "node show we"); len(got) > 0 || time.Since(begun) > 10*time.Second {
		t.Errorf("a server that is away: %q after %s", got, time.Since(begun))
	}
}

// offers is what a shell is told for a line, without descriptions.
func (s *server) offers(t *testing.T, line string) (values []string) {
	t.Helper()
	r := s.try(t, append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
	if r.code != 0 || strings.Contains(r.err, "tutti:") {
		t.Errorf("tutti %s: %d %s", line, r.code, r.text())
	}
	for value := range strings.Lines(r.out) {
		if value = strings.TrimSuffix(value, "\n"); !strings.HasPrefix(value, ":") {
			values = append(values, value)
		}
	}
	return values
}

// typist is somebody at a terminal.
type typist struct {
	terminal *os.File
	mu       sync.Mutex
	screen   strings.Builder // what was printed since the last look
	changed  chan struct{}
}

// openTerminal starts a program at a terminal of its own.
func openTerminal(t *testing.T, s *server, args ...string) *typist {
	t.Helper()
	if err := needs(args[0], args[0]); err != nil {
		t.Fatal(err)
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = home, slave, slave, slave
	cmd.Env = append(cleanEnv(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+s.data, "HOME="+home, "TERM=xterm", "PS1=> ", "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := &typist{terminal: master, changed: make(chan struct{}, 1)}
	go p.watch()
	return p
}

// watch keeps what is printed, until the terminal is closed.
func (p *typist) watch() {
	buffer := make([]byte, 4096)
	for {
		n, err := p.terminal.Read(buffer)
		p.mu.Lock()
		p.screen.Write(buffer[:n])
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *typist) types(text string) { _, _ = io.WriteString(p.terminal, text) }

// sees waits until a text is printed, and forgets what was printed up to then.
func (p *typist) sees(t *testing.T, name, want string) {
	t.Helper()
	end := time.After(time.Minute)
	for {
		p.mu.Lock()
		printed := p.screen.String()
		if _, rest, found := strings.Cut(printed, want); found {
			p.screen.Reset()
			p.screen.WriteString(rest)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		select {
		case <-p.changed:
		case <-end:
			t.Fatalf("%s: %q is not printed, but %q", name, want, printed)
		}
	}
}
