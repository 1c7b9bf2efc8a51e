package cell

import (
	"cmp"
	"slices"
)

// Mode is how much a cell must have.
type Mode string

// The modes.
const (
	BestEffort Mode = "best-effort" // what the machine has; the rest is reported
	Strict     Mode = "strict"      // without a part that must be there, nothing starts
	Off        Mode = "off"         // no cells
)

// Spec is what a program in a cell may reach.
type Spec struct {
	Read  []string // files, or directories with all below them
	Run   []string // as Read, and what is there may be run
	Write string   // a private directory; in namespaces it is an empty one in memory; empty: none
	Hide  []string // directories that look empty but for what is named otherwise
	Ports []int    // TCP ports that may be connected to; none: no network at all, where that can be had
	Nice  int      // how far the program stands back for others: 0 to 19

	Limits Limits
}

// Limits bound what a program and all that it starts may take. Zero values mean the defaults.
type Limits struct {
	Processes    int   `json:"processes"` // 512
	OpenFiles    int   `json:"open_files"`
	FileBytes    int64 `json:"file_bytes"`    // of one file; 128 MiB
	ScratchBytes int64 `json:"scratch_bytes"` // of the private directory; 128 MiB
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Processes: cmp.Or(l.Processes, 512), OpenFiles: cmp.Or(l.OpenFiles, 4096),
		FileBytes: cmp.Or(l.FileBytes, 128<<20), ScratchBytes: cmp.Or(l.ScratchBytes, 128<<20),
	}
}

// order is what a guard is told.
type order struct {
	Program string   `json:"program"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
	Files   int      `json:"files"` // inherited ones beyond the first three

	Read  []string `json:"read"`
	Run   []string `json:"run"`
	Write string   `json:"write"`
	Hide  []string `json:"hide"`
	Ports []int    `json:"ports"`
	Nice  int      `json:"nice"`

	Limits Limits `json:"limits"`
	UID    int    `json:"uid"` // 0: the same user
	GID    int    `json:"gid"`
	Spaces bool   `json:"spaces"` // it is in namespaces of its own
}

// Report is what a guard says of the cell that it built.
type Report struct {
	Landlock int      `json:"landlock"` // the kernel's version of it; 0: none
	Seccomp  bool     `json:"seccomp"`
	Spaces   bool     `json:"spaces"`
	UID      int      `json:"uid"`
	PID      int      `json:"pid"`    // of the program, as the cell numbers it
	Absent   []string `json:"absent"` // paths that were named and are not there
	Error    string   `json:"error,omitempty"`
}

// ask is what a guard is asked, and its answer.
type ask struct {
	Serial int    `json:"serial"`
	Op     string `json:"op,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Keep   []int  `json:"keep,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Found  bool   `json:"found,omitempty"`
}

const (
	opKill     = "kill"     // a process group and what it left behind; no answer
	opResident = "resident" // the memory of a process and of all that it started
	opClear    = "clear"    // what a process started, but for what is to be kept, and what lost its parent
)

// command is what a program is called with when it is to guard a cell, followed by the number of its socket.
const command = "guard-cell"

// maxOrderBytes bounds an order: environment and paths.
const maxOrderBytes = 4 << 20

// Standing is what cells of this machine have.
type Standing struct {
	Mode     Mode   `json:"mode"`
	User     string `json:"user,omitempty"` // whom the code runs as; empty: the server's own
	Landlock int    `json:"landlock"`
	Seccomp  bool   `json:"seccomp"`
	Spaces   bool   `json:"namespaces"`
	Missing  []Lack `json:"missing"`
}

// Lack is a part that cells do not have.
type Lack struct {
	Part string `json:"part"` // cell, user, namespaces, landlock, landlock-tcp, landlock-signals
	Why  string `json:"why"`  // what that means, and why it is so, for people
}

// Parts names what is missing.
func (s Standing) Parts() []string {
	parts := make([]string, len(s.Missing))
	for i, lack := range s.Missing {
		parts[i] = lack.Part
	}
	return parts
}

// Reasons are sentences about what is missing.
func (s Standing) Reasons() []string {
	reasons := make([]string, len(s.Missing))
	for i, lack := range s.Missing {
		reasons[i] = lack.Why
	}
	return reasons
}

// system is what programs need of a system to run at all: programs, libraries, time zones,
// names, certificates. No keys and no settings are below them.
var (
	systemRun = []string{
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib",
		"/usr/local/lib64", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	}
	systemRead = []string{
		"/usr/share", "/usr/local/share", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf",
		"/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/localtime", "/etc/timezone",
		"/etc/os-release", "/etc/hostname", "/etc/networks",
		"/etc/debian_version", "/etc/redhat-release", "/etc/lsb-release", "/etc/locale.alias", "/etc/mime.types", "/etc/alternatives",
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates",
		"/etc/crypto-policies", "/sys/devices/system/cpu", "/proc",
	}
	// namesRead is needed besides to find hosts, where a network is allowed.
	namesRead = []string{"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"}
	devices   = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
	// hidden is where others keep theirs: sockets that Landlock does not know, home directories.
	hidden = []string{"/tmp", "/var/tmp", "/run", "/home", "/root", "/mnt", "/media", "/boot"}
)

// withSystem adds what every program needs.
func (s Spec) withSystem() Spec {
	s.Run, s.Read, s.Hide = slices.Concat(systemRun, s.Run), slices.Concat(systemRead, s.Read), slices.Concat(hidden, s.Hide)
	if len(s.Ports) > 0 {
		s.Read = append(s.Read, namesRead...)
	}
	s.Limits = s.Limits.withDefaults()
	return s
}
