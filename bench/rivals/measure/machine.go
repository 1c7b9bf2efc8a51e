package measure

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine says where the figures come from.
type Machine struct {
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	MemoryBytes int64   `json:"memory_bytes"`
	System      string  `json:"system"`
	Kernel      string  `json:"kernel"`
	Go          string  `json:"go"`
	Load1       float64 `json:"load1"` // at the start: above 0.5 somebody else is busy
}

// String is one line for people.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %.0f GB, %s, Linux %s, %s, load at start %.2f",
		m.CPU, m.Cores, float64(m.MemoryBytes)/1e9, m.System, m.Kernel, m.Go, m.Load1)
}

// ThisMachine reads /proc and /etc/os-release. What it cannot read stays empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	m.CPU = strings.TrimSpace(fieldOf("/proc/cpuinfo", "model name", ":"))
	m.System = strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME", "="), `"`)
	kib := strings.TrimSuffix(strings.TrimSpace(fieldOf("/proc/meminfo", "MemTotal", ":")), " kB")
	if n, err := strconv.ParseInt(kib, 10, 64); err == nil {
		m.MemoryBytes = n << 10
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.Load1, _ = strconv.ParseFloat(first, 64)
	}
	return m
}

// fieldOf finds the value of the first line that starts with key.
func fieldOf(path, key, separator string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), separator)
		if ok && strings.TrimSpace(name) == key {
			return value
		}
	}
	return ""
}
