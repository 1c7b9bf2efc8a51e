package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// process is one process, told apart from a later one with the same number.
type process struct {
	pid, parent int
	started     string // clock ticks since boot
	command     string
}

// processes lists what runs on this machine.
func processes() []process {
	var list []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if p, ok := lookup(pid); ok {
			list = append(list, p)
		}
	}
	return list
}

// lookup reads one process; a zombie counts as gone.
func lookup(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 22 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return process{
		pid: pid, parent: parent, started: fields[19], command: strings.ReplaceAll(string(line), "\x00", " "),
	}, true
}

// alive says whether that very process still runs.
func (p process) alive() bool {
	now, ok := lookup(p.pid)
	return ok && now.started == p.started
}

func (p process) kill() { _ = syscall.Kill(p.pid, syscall.SIGKILL) }

// below lists the descendants of a process, parents first.
func below(pid int) []process {
	all := processes()
	parents := map[int]bool{pid: true}
	var found []process
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if parents[p.parent] && !parents[p.pid] {
				parents[p.pid], grew = true, true
				found = append(found, p)
			}
		}
	}
	return found
}

// marked lists the processes that have an entry in their environment: whoever had it first, and all that came of it, also when who started them
// is gone.
func marked(entry string) []process {
	var found []process
	for _, p := range processes() {
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid)) // it may have ended
		if strings.Contains("\x00"+string(environment), "\x00"+entry+"\x00") {
			found = append(found, p)
		}
	}
	return found
}

// memoryOf sums up the memory of a process and its descendants, in bytes. Pages that
// forked processes share are counted once in all (PSS).
func memoryOf(pid int) int64 {
	sum := pss(pid)
	for _, p := range below(pid) {
		sum += pss(p.pid)
	}
	return sum
}

func pss(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
