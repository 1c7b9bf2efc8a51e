//go:build amd64 || arm64

package cell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

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
