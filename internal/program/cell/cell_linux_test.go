//go:build amd64 || arm64

package cell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestMain(m *testing.M) {
	become()
	os.Exit(m.Run())
}

const nobody = 65534

// opened is a keeper with what this machine has.
func opened(t *testing.T, c Config) *Keeper {
	t.Helper()
	c.Dir = t.TempDir()
	if c.Mode == "" {
		c.Mode = BestEffort
	}
	k, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !k.built() {
		t.Fatalf("no cell here: %q", k.Standing().Reasons())
	}
	return k
}

// keepers are the cells that are to hold: with all there is, and with what is left without namespaces. As root also with a user.
func keepers(t *testing.T) map[string]*Keeper {
	t.Helper()
	all := map[string]*Keeper{"own user": opened(t, Config{})}
	bare := *all["own user"]
	bare.spaces, bare.standing.Spaces = false, false
	all["own user, no namespaces"] = &bare
	if os.Geteuid() == 0 {
		all["another user"] = opened(t, Config{User: "nobody", Mode: Strict})
	}
	return all
}

// open lists, for each kind of cell, the attempts that are known to succeed: docs/compile-cell.md names them.
func open(name string) []string {
	var known []string
	if strings.Contains(name, "no namespaces") {
		known = []string{"make a file readable", "date a file", "send by UDP", "connect to a socket", "a full disk"}
		if os.Geteuid() == 0 { // nobody limits the number of root's processes
			known = append(known, "many processes")
		}
	}
	return known
}

type targets struct {
	Secret   string `json:"secret"`
	Outside  string `json:"outside"`
	Allowed  string `json:"allowed"`
	Private  string `json:"private"`
	Server   int    `json:"server"`
	TCP      int    `json:"tcp"`
	UDP      int    `json:"udp"`
	Socket   string `json:"socket"`
	Abstract string `json:"abstract"`
}

// aim makes what is attacked.
func aim(t *testing.T) targets {
	t.Helper()
	dir := t.TempDir()
	a := targets{
		Secret: filepath.Join(dir, "outside", "secret"), Outside: filepath.Join(dir, "outside"), Allowed: filepath.Join(dir, "allowed"),
		Private: filepath.Join(dir, "private"), Server: os.Getpid(), Socket: filepath.Join(dir, "outside", "socket"),
		Abstract: "tutti-" + filepath.Base(filepath.Dir(dir)),
	}
	if err := os.Mkdir(a.Outside, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{a.Secret, a.Allowed} {
		if err := os.WriteFile(path, []byte("secret"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path, err := net.Listen("unix", a.Socket)
	if err != nil {
		t.Fatal(err)
	}
	abstract, err := net.Listen("unix", "@"+a.Abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _, _ = tcp.Close(), udp.Close(), path.Close(), abstract.Close() })
	a.TCP, a.UDP = tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	return a
}

// Every attempt of testdata/attack.rb fails, but for those that are known; and what code needs works.
func TestAttacksFail(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("testdata/attack.rb")
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range keepers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := aim(t)
			if err := k.Private(at.Private); err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(at)
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "/usr/bin/ruby", script, string(line))
			cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &said, &said, []string{"PATH=/usr/bin:/bin"}, "/"
			p, err := k.Start(cmd, Spec{
				Read: []string{script, at.Allowed}, Write: at.Private,
				Limits: Limits{Processes: 64, OpenFiles: 64, FileBytes: 1 << 20, ScratchBytes: 8 << 20},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(); err == nil {
				t.Error("the program killed itself, and ended well")
			}
			var found struct{ Succeeded, Failed []string }
			if err := json.Unmarshal(said.Bytes(), &found); err != nil {
				t.Fatalf("it said %q: %v", said.String(), err)
			}
			slices.Sort(found.Succeeded)
			want := open(name)
			slices.Sort(want)
			if diff := cmp.Diff(want, found.Succeeded); diff != "" && len(want)+len(found.Succeeded) > 0 {
				t.Errorf("attempts that succeeded (-known +got):\n%s", diff)
			}
			if len(found.Failed) > 0 {
				t.Errorf("what code needs and did not get: %v", found.Failed)
			}
		})
	}
}

// unprivileged is the variable of a process that TestWithoutPrivileges started.
const unprivileged = "TUTTI_TEST_UNPRIVILEGED"

// All of it holds for a server without privileges.
func TestWithoutPrivileges(t *testing.T) {
	t.Parallel()
	switch {
	case os.Getenv(unprivileged) != "": // it is what the other tests show
		return
	case os.Geteuid() != 0:
		t.Fatal("this starts the other tests as nobody: run it as root, sudo go test ./internal/program/cell")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^Test", "-test.count=1")
	cmd.Env, cmd.Dir = append(os.Environ(), unprivileged+"=1", "HOME=/", "TMPDIR=/tmp", "PWD="+dir), dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// Ports that are named can be connected to, others cannot.
func TestPorts(t *testing.T) {
	t.Parallel()
	at := aim(t)
	k := opened(t, Config{})
	for _, try := range []struct {
		port int
		want string
	}{{at.TCP, "connected\n"}, {at.TCP - 1, "refused\n"}} {
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "/usr/bin/ruby", "-rsocket", "-e",
			"begin TCPSocket.new('127.0.0.1', ARGV[0].to_i); puts 'connected'; rescue Errno::EACCES; puts 'refused'; end", fmt.Sprint(try.port))
		cmd.Stdout, cmd.Stderr = &said, &said
		p, err := k.Start(cmd, Spec{Ports: []int{at.TCP}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil || said.String() != try.want {
			t.Errorf("port %d: %v, %q, want %q", try.port, err, said.String(), try.want)
		}
	}
}

// Exit codes, descriptors and the working directory are the program's own.
func TestProgramsRunAsTheyAre(t *testing.T) {
	t.Parallel()
	k := opened(t, Config{})
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `cat; pwd; echo "$WORD" >&3; exit 7`)
	cmd.Stdin, cmd.Dir, cmd.Env, cmd.ExtraFiles = strings.NewReader("in\n"), "/usr", []string{"WORD=out", "PATH=/usr/bin:/bin"}, []*os.File{write}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	p, err := k.Start(cmd, Spec{})
	_ = write.Close()
	if err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscan(read, &word); err != nil || word != "out" {
		t.Errorf("descriptor 3 gave %q, %v", word, err)
	}
	err = p.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 || said.String() != "in\n/usr\n" {
		t.Errorf("it ended with %v, and said %q", err, said.String())
	}
	if _, err := k.Start(exec.CommandContext(t.Context(), "/usr/bin/no-such-program"), Spec{}); fault.Of(err) != fault.Unavailable {
		t.Errorf("a program that is not there: %v", err)
	}
}

// What stands back does so for all of the machine, also where the kernel shares processors among sessions.
func TestStandingBack(t *testing.T) {
	t.Parallel()
	_, err := os.Stat("/proc/self/autogroup")
	sessions := err == nil
	for name, k := range keepers(t) {
		for nice, want := range map[int]string{11: "11 nice 11\n"} {
			var said bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo $(nice) $(sed 's/.*nice/nice/' /proc/self/autogroup)`)
			cmd.Stdout, cmd.Stderr = &said, &said
			p, err := k.Start(cmd, Spec{Nice: nice})
			if err != nil {
				t.Fatal(err)
			}
			if !sessions {
				want = fmt.Sprintln(nice)
			}
			if err := p.Wait(); err != nil || said.String() != want {
				t.Errorf("%s: %v, %q, want %q", name, err, said.String(), want)
			}
		}
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read go; nice")
	order, begin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = order, &said
	p, err := new(Keeper).Start(cmd, Spec{Nice: 11}) // without a cell
	if err != nil {
		t.Fatal(err)
	}
	_, _ = begin.WriteString("go\n")
	if err := p.Wait(); err != nil || said.String() != "11\n" {
		t.Errorf("without a cell: %v, %q", err, said.String())
	}
}

// What settings ask for and cannot have is refused.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{Mode: BestEffort, User: "no-such-user"}, {Mode: BestEffort, User: "root"}} {
		c.Dir = t.TempDir()
		if _, err := Open(t.Context(), c); fault.Of(err) != fault.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if os.Geteuid() == 0 {
		_, err := Open(t.Context(), Config{Mode: Strict, Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "would run as root") {
			t.Errorf("strict, and no user of its own: %v", err)
		}
	}
	off, err := Open(t.Context(), Config{Mode: Off, Dir: t.TempDir()})
	if err != nil || off.built() || off.Standing().Mode != Off {
		t.Errorf("off: %v, %+v", err, off.Standing())
	}
}

// A server's directory lies in /var/lib, say, where its cells leave everything as it is, and only the server may pass it. What is in it
// and may be read can be read by the user that code runs as, because the directory itself is hidden.
func TestADirectoryThatOnlyTheServerMayPass(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root runs code as another user
	}
	data, err := os.MkdirTemp("/dev/shm", "tutti-cell-") //nolint:usetesting // not below what all cells hide, as all directories for tests are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	within := filepath.Join(data, "cells")
	if err := os.Mkdir(within, 0o700); err != nil {
		t.Fatal(err)
	}
	k, err := Open(t.Context(), Config{Mode: Strict, User: "nobody", Dir: within, Hide: data})
	if err != nil || k.Standing().User != "nobody" || len(k.Standing().Missing) != 0 && k.Standing().Landlock >= 6 {
		t.Errorf("%v, %+v", err, k.Standing())
	}
}
