package cell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// member is a process as /proc shows it.
type member struct {
	pid, parent int
	dead        bool // nobody has waited for it yet
}

// members lists all processes that /proc shows.
func members() []member {
	names, _ := filepath.Glob("/proc/[0-9]*")
	all := make([]member, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(name + "/stat")
		if err != nil {
			continue // it has ended
		}
		end := bytes.LastIndexByte(text, ')') // its name may hold anything
		fields := bytes.Fields(text[end+1:])
		if end < 0 || len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(name))
		parent, _ := strconv.Atoi(string(fields[1]))
		all = append(all, member{pid, parent, fields[0][0] == 'Z' || fields[0][0] == 'X'})
	}
	return all
}

// started tells that a process has children, dead or alive, which are not among some: without a look at all processes, where the kernel can tell.
func started(of int, but []int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", of))
	if err != nil {
		return true
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", of, task.Name()))
		if err != nil {
			return len(descendants(of, but...)) > 0 // the thread has ended, or the kernel has no such file
		}
		for field := range bytes.FieldsSeq(text) {
			if pid, _ := strconv.Atoi(string(field)); !slices.Contains(but, pid) {
				return true
			}
		}
	}
	return false
}

// descendants are the living processes below one, without some and what is below those.
func descendants(of int, but ...int) []int { return descendantsIn(members(), of, but...) }

// withDescendants is a process with its descendants, those that live.
func withDescendants(all []member, pid int) (pids []int) {
	if slices.ContainsFunc(all, func(m member) bool { return m.pid == pid && !m.dead }) {
		pids = []int{pid}
	}
	return append(pids, descendantsIn(all, pid)...)
}

// descendantsIn is descendants among some members. They were read one after the other: of a parent that died meanwhile it may be known that it is dead, or
// nothing at all, while its children are still said to be below it. They are found all the same.
func descendantsIn(all []member, of int, but ...int) (pids []int) {
	children := map[int][]member{}
	for _, m := range all {
		children[m.parent] = append(children[m.parent], m)
	}
	for waiting := []int{of}; len(waiting) > 0; waiting = waiting[1:] {
		for _, m := range children[waiting[0]] {
			if slices.Contains(but, m.pid) {
				continue
			}
			waiting = append(waiting, m.pid)
			if !m.dead {
				pids = append(pids, m.pid)
			}
		}
	}
	return pids
}

// threadsOf counts the threads of a user that /proc shows.
func threadsOf(uid int) (threads int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		var stat unix.Stat_t
		if unix.Stat(name, &stat) == nil && int(stat.Uid) == uid {
			tasks, _ := os.ReadDir(name + "/task")
			threads += len(tasks)
		}
	}
	return threads
}

// mostCounted bounds the descendants whose memory is looked at.
const mostCounted = 256

// residentBytes is what a process holds with all that it started: its own resident memory, and of the others their share.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	total := pages * int64(os.Getpagesize())
	for i, child := range descendants(pid) {
		if i == mostCounted {
			break
		}
		total += shareOf(child)
	}
	return total
}

// shareOf is the memory of a process, with what it shares divided among those who do.
func shareOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(text, []byte("\nPss:"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kilobytes << 10
}

const (
	// killTime bounds how long killing goes on; who forks faster than that meets its limit of processes.
	killTime  = 5 * time.Second
	killPause = time.Millisecond
)

// killAll kills until list is empty, twice: it may miss a process whose parents died while it looked, and that has another parent now.
// Each round stops them first, so that none of them makes another meanwhile.
func killAll(list func() []int) {
	pause := time.NewTicker(killPause)
	defer pause.Stop()
	empty := 0
	for end := time.Now().Add(killTime); time.Now().Before(end); <-pause.C {
		pids := list()
		if len(pids) > 0 {
			empty = 0
		} else if empty++; empty == 2 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
