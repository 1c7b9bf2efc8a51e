package measure

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat. Linux fixes it at 100
// a second for user space, whatever the kernel's own clock does.
const clockTick = 10 * time.Millisecond

// Usage is what a tree of processes has used until now.
type Usage struct {
	CPU       time.Duration // user and system, reaped children included
	PSSBytes  int64
	RSSBytes  int64
	RootPSS   int64 // of them, the roots' own bytes
	RootRSS   int64
	RootAnon  int64 // of RootRSS, what is no page of a file
	Processes int
}

// And is both together, such as of a server and its database.
func (u Usage) And(other Usage) Usage {
	u.CPU += other.CPU
	u.PSSBytes += other.PSSBytes
	u.RSSBytes += other.RSSBytes
	u.RootPSS += other.RootPSS
	u.RootRSS += other.RootRSS
	u.RootAnon += other.RootAnon
	u.Processes += other.Processes
	return u
}

// Since gives the CPU burnt since an earlier sample; memory and count are the
// later sample's.
func (u Usage) Since(earlier Usage) Usage {
	u.CPU -= earlier.CPU
	return u
}

// Tree sums the usage of the processes roots and of all their descendants.
// Processes that lead or share a root's process group count too: a child that
// outlived its parent is still the server's.
func Tree(roots ...int) (Usage, error) {
	return treeIn("/proc", roots)
}

// PIDs lists the processes that [Tree] counts.
func PIDs(roots ...int) ([]int, error) {
	stats, err := readStats("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for pid := range members(stats, roots) {
		pids = append(pids, pid)
	}
	return pids, nil
}

func treeIn(proc string, roots []int) (Usage, error) {
	stats, err := readStats(proc)
	if err != nil {
		return Usage{}, err
	}
	var sum Usage
	for pid := range members(stats, roots) {
		sum.CPU += stats[pid].cpu
		memory := readMemory(proc, pid)
		sum.PSSBytes += memory.pss
		sum.RSSBytes += memory.rss
		if slices.Contains(roots, pid) {
			sum.RootPSS += memory.pss
			sum.RootRSS += memory.rss
			sum.RootAnon += memory.anonymous
		}
		sum.Processes++
	}
	for _, root := range roots {
		if _, alive := stats[root]; !alive {
			return sum, fmt.Errorf("process %d is gone", root)
		}
	}
	return sum, nil
}

// stat is what we need of /proc/PID/stat.
type stat struct {
	parent, group int
	cpu           time.Duration
}

func readStats(proc string) (map[int]stat, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	stats := make(map[int]stat, len(entries))
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		line, err := os.ReadFile(filepath.Join(proc, entry.Name(), "stat"))
		if err != nil {
			continue // it ended meanwhile
		}
		if s, ok := parseStat(string(line)); ok {
			stats[pid] = s
		}
	}
	return stats, nil
}

// parseStat reads one line of /proc/PID/stat. The command name stands in
// parentheses and may itself hold parentheses and spaces, so fields are counted
// from the last closing one.
func parseStat(line string) (stat, bool) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, false
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 15 { // state is field 3 of the line and fields[0] here
		return stat{}, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	group, err2 := strconv.Atoi(fields[2])
	if err1 != nil || err2 != nil {
		return stat{}, false
	}
	var ticks int64
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return stat{}, false
		}
		ticks += n
	}
	return stat{parent: parent, group: group, cpu: time.Duration(ticks) * clockTick}, true
}

// members finds roots, their descendants, and whoever is in a root's own
// process group.
func members(stats map[int]stat, roots []int) map[int]bool {
	in := map[int]bool{}
	for _, root := range roots {
		if _, alive := stats[root]; alive {
			in[root] = true
		}
		for pid, s := range stats {
			if s.group == root {
				in[pid] = true
			}
		}
	}
	for grew := true; grew; {
		grew = false
		for pid, s := range stats {
			if !in[pid] && in[s.parent] {
				in[pid], grew = true, true
			}
		}
	}
	return in
}

// memory is that of one process, in bytes.
type memory struct{ pss, rss, anonymous int64 }

// readMemory gives the memory of one process, none for one that ended.
func readMemory(proc string, pid int) memory {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return memory{}
	}
	return memory{rollupBytes(text, "Pss:"), rollupBytes(text, "Rss:"), rollupBytes(text, "Anonymous:")}
}

// rollupBytes finds one line such as "Pss:   123 kB".
func rollupBytes(text []byte, key string) int64 {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == key {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// Parent is the parent of a process, 0 if it is gone.
func Parent(pid int) int {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	s, _ := parseStat(string(line))
	return s.parent
}
