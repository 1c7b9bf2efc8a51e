package processes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const proc = "/proc"

// running lists all processes by their IDs. One that ends while they are listed is left out.
func running(ctx context.Context) ([]Process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, entry := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		p, err := read(filepath.Join(proc, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return all, nil
}

func read(dir string) (Process, error) {
	var owner syscall.Stat_t
	if err := syscall.Stat(dir, &owner); err != nil {
		return Process{}, err
	}
	stat, err := beginning(filepath.Join(dir, "stat"), 4<<10)
	if err != nil {
		return Process{}, err
	}
	p, err := parseStat(stat, os.Getpagesize())
	if err != nil {
		return Process{}, err
	}
	line, err := beginning(filepath.Join(dir, "cmdline"), 128<<10)
	p.UID = int(owner.Uid)
	p.CommandLine = commandLine(line, p.Name)
	return p, err
}

func beginning(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, most))
}

var errStat = errors.New("a stat file of /proc has another form")

// parseStat reads /proc/PID/stat: PID (NAME) STATE PARENT ... The name may have anything in it.
func parseStat(text []byte, page int) (Process, error) {
	before, rest, ok := bytes.Cut(text, []byte(" ("))
	end := bytes.LastIndex(rest, []byte(") "))
	if !ok || end < 0 {
		return Process{}, errStat
	}
	fields := strings.Fields(string(rest[end+2:]))
	if len(fields) < 22 {
		return Process{}, errStat
	}
	p := Process{State: fields[0], Name: strings.ToValidUTF8(string(rest[:end]), "\uFFFD")}
	var errs [4]error
	p.PID, errs[0] = strconv.Atoi(string(before))
	p.Parent, errs[1] = strconv.Atoi(fields[1])
	p.VirtualSize, errs[2] = strconv.ParseInt(fields[20], 10, 64)
	p.Resident, errs[3] = strconv.ParseInt(fields[21], 10, 64)
	p.Resident *= int64(page)
	if errors.Join(errs[:]...) != nil {
		return Process{}, errStat
	}
	return p, nil
}

// commandLine makes one line of arguments that end with NUL.
func commandLine(text []byte, name string) string {
	line := strings.Join(strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 }), " ")
	if line == "" {
		return "[" + name + "]"
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}
