package hook_test

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/program/hook"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

var openCells = sync.OnceValues(func() (*cell.Keeper, error) {
	dir, err := os.MkdirTemp("", "cells-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return cell.Open(context.Background(), cell.Config{Mode: cell.BestEffort, Dir: dir})
})

// tries prints what it could do.
const tries = `#!/bin/bash
can() { if eval "$2" >/dev/null 2>&1; then r=true; else r=false; fi; printf '"%s":%s,' "$1" $r; }
printf '{'
can 'read a secret' 'cat SECRET'
can 'list the data directory' 'ls DATA | grep -q token'
can 'write beside it' 'echo x > NAMED/x'
can 'reach the server' ': < /dev/tcp/127.0.0.1/CLOSED'
can 'see the server' 'test -r /proc/SELF/environ && grep -q go-build /proc/SELF/cmdline'
can 'signal the server' 'kill -0 SELF && test "$(cat /proc/SELF/comm)" != bash'
can 'read what is named' 'grep -q allowed NAMED/list'
can 'run what is named' 'NAMED/helper'
can 'reach a named port' ': < /dev/tcp/127.0.0.1/OPENED'
can 'write at home' 'echo x > "$HOME/x" && test "$(cat "$HOME/x")" = x'
can 'use a temporary file' 'f=$(mktemp) && test -w "$f"'
setsid sh -c 'sleep 1000' </dev/null >/dev/null 2>&1 &
printf '"asked for":"%s"}' "$1"
`

// An operator's program does its work, and reaches nothing else: it is fed by strangers.
func TestProgramsRunInACell(t *testing.T) {
	t.Parallel()
	keeper, err := openCells()
	must(t, err)
	if s := keeper.Standing(); !s.Seccomp {
		t.Fatalf("no cells here: %v", s.Reasons())
	}
	data, named := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{data + "/token": "s3cret\n", named + "/list": "allowed\n"} {
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	must(t, os.Chmod(named, 0o755))
	script(t, named+"/helper", "exit 0")
	opened, closed := listen(t), listen(t)
	text := strings.NewReplacer("SECRET", data+"/token", "DATA", data, "NAMED", named, "CLOSED", strconv.Itoa(closed), "OPENED", strconv.Itoa(opened),
		"SELF", strconv.Itoa(os.Getpid())).Replace(tries)
	want := map[string]any{
		"read a secret": false, "list the data directory": false, "write beside it": false, "see the server": false, "signal the server": false,
		"read what is named": true, "run what is named": true, "write at home": true, "use a temporary file": true, "asked for": "web1",
	}
	for name, c := range map[string]struct {
		ports        []int
		reachesNamed bool
	}{
		"no network": {},
		"one port":   {ports: []int{opened}, reachesNamed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(data, strings.Fields(name)[0])
			must(t, os.Mkdir(dir, 0o700))
			reach := cell.Spec{Run: []string{named}, Ports: c.ports, Hide: []string{data}}
			runner := hook.New(hook.Config{Log: quiet, Cells: keeper, Dir: dir, Reach: reach})
			program, err := runner.TrustedExternal(programtest.Write(t, filepath.Join(t.TempDir(), "external"), text))
			must(t, err)
			printed, err := program.External(t.Context(), "web1")
			must(t, err)
			var got map[string]any
			must(t, json.Unmarshal(printed, &got))
			expected := map[string]any{"reach the server": false, "reach a named port": c.reachesNamed}
			maps.Copy(expected, want)
			for what, may := range expected {
				if got[what] != may {
					t.Errorf("%s: %v, want %v", what, got[what], may)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if s := sleepers(t, dir); len(s) > 0 {
				t.Errorf("processes %v outlived the program", s)
			}
		})
	}
}

// listen opens a port of this machine that somebody listens to.
func listen(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// sleepers are processes whose home is below a directory.
func sleepers(t *testing.T, home string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ")); err == nil && strings.Contains(string(env), "HOME="+home) {
			if syscall.Kill(pid, 0) == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
