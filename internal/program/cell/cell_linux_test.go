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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestMain(m *testing.M) {
	Main()
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

// sleepers counts the processes of this machine that sleep for a number of seconds that only this test has.
func sleepers(seconds string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		text, err := os.ReadFile(name)
		var pid int
		if _, scanned := fmt.Sscanf(name, "/proc/%d/", &pid); err == nil && scanned == nil && string(text) == "sleep\x00"+seconds+"\x00" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// await waits for the end, or the beginning, of processes: they tell nobody.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick, end := time.NewTicker(2*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// What left the group, the session and its parents ends with the cell: killed, or left alone by its server.
func TestNothingSurvives(t *testing.T) {
	t.Parallel()
	const script = `setsid sleep "$1" & sleep "$1" & setsid sh -c 'setsid sleep "$0" & exit 0' "$1"; exec sleep "$1"`
	for name, k := range keepers(t) {
		for how, end := range map[string]func(*Process){
			"killed": (*Process).Kill, "left alone": func(p *Process) { _ = p.server.Close() },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				seconds := fmt.Sprintf("%d.%d", 5000+os.Getpid(), time.Now().UnixNano())
				cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "sh", seconds)
				p, err := k.Start(cmd, Spec{})
				if err != nil {
					t.Fatal(err)
				}
				await(t, "four sleepers", func() bool { return len(sleepers(seconds)) == 4 })
				end(p)
				if err := p.Wait(); err == nil {
					t.Error("it ended well")
				}
				await(t, "the end of all sleepers", func() bool { return len(sleepers(seconds)) == 0 })
			})
		}
	}
}

// A group is ended by its number in the cell with what it left behind; the program goes on.
func TestKillGroup(t *testing.T) {
	t.Parallel()
	const script = `
		one = fork { Process.setpgid(0, 0); spawn('setsid', 'sleep', ARGV[0]); spawn('sleep', ARGV[0]); sleep }
		two = fork { Process.setpgid(0, 0); sleep }
		puts one, two
		$stdout.flush
		puts Process.wait == one
		$stdout.flush
		Process.kill(0, two)
		held = 'x' * 50_000_000
		puts 'held'
		$stdout.flush
		sleep`
	for name, k := range keepers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seconds := fmt.Sprintf("%d.%d", 5000+os.Getpid(), time.Now().UnixNano())
			cmd := exec.CommandContext(t.Context(), "/usr/bin/ruby", "-e", script, seconds)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			p, err := k.Start(cmd, Spec{})
			if err != nil {
				t.Fatal(err)
			}
			var one, two int
			if _, err := fmt.Fscan(out, &one, &two); err != nil {
				t.Fatal(err)
			}
			await(t, "two sleepers", func() bool { return len(sleepers(seconds)) == 2 })
			before := p.Resident(p.Program())
			p.KillGroup(one)
			var first, held string
			if _, err := fmt.Fscan(out, &first, &held); err != nil || first != "true" {
				t.Errorf("the killed group was not the first to end: %q, %v", first, err)
			}
			await(t, "the end of the sleepers", func() bool { return len(sleepers(seconds)) == 0 })
			if after := p.Resident(p.Program()); before <= 0 || after < before+40<<20 {
				t.Errorf("the program held %d bytes, and %d after it took 50 MB more", before, after)
			}
			p.Kill()
			_ = p.Wait()
			if left := p.Resident(p.Program()); left != 0 {
				t.Errorf("after its end it holds %d bytes", left)
			}
		})
	}
}

// What a process of the program started ends, in a session of its own or not, also what lost its parent; not the process itself, nor what is to be kept.
func TestClear(t *testing.T) {
	t.Parallel()
	const script = `
		busy = fork { Process.setpgid(0, 0); spawn('sleep', ARGV[1]); sleep }
		one = fork do
			Process.setpgid(0, 0)
			$stdin.gets
			spawn('sleep', ARGV[0])
			spawn('setsid', 'sleep', ARGV[0])
			system('setsid', 'sh', '-c', 'setsid sleep "$0" & exit 0', ARGV[0])
			sleep
		end
		puts busy, one
		$stdout.flush
		sleep`
	all := keepers(t)
	all["no cell"] = new(Keeper)
	for name, k := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, kept := fmt.Sprintf("%d.%d", 5000+os.Getpid(), time.Now().UnixNano()), fmt.Sprintf("%d.%d", 6000+os.Getpid(), time.Now().UnixNano())
			cmd := exec.CommandContext(t.Context(), "/usr/bin/ruby", "-e", script, left, kept)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			p, err := k.Start(cmd, Spec{})
			if err != nil {
				t.Fatal(err)
			}
			var busy, one int
			if _, err := fmt.Fscan(out, &busy, &one); err != nil {
				t.Fatal(err)
			}
			if p.Clear(one) {
				t.Error("something was ended of a process that started nothing")
			}
			_, _ = in.Write([]byte("go\n"))
			await(t, "four sleepers", func() bool { return len(sleepers(left)) == 3 && len(sleepers(kept)) == 1 })
			if !p.Clear(one) {
				t.Error("nothing was found")
			}
			want := 0
			if name == "no cell" { // the system took what lost its parent
				want = 1
			}
			if still := sleepers(left); len(still) != want {
				t.Errorf("%v still sleep, want %d", still, want)
			}
			if p.Resident(one) == 0 || p.Clear(p.Program(), busy, one) || len(sleepers(kept)) != 1 {
				t.Error("what was to be kept has ended")
			}
			if !p.Clear(p.Program()) || len(sleepers(kept)) != 0 {
				t.Error("all that the program started was to end")
			}
			p.Kill()
			_ = p.Wait()
			if name == "no cell" {
				for _, pid := range sleepers(left) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
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
