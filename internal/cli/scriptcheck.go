package cli

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// programs begin so: ELF, Windows, macOS.
var programs = [][]byte{[]byte("\x7fELF"), []byte("MZ"), {0xcf, 0xfa, 0xed, 0xfe}, {0xce, 0xfa, 0xed, 0xfe}, {0xca, 0xfe, 0xba, 0xbe}}

// ranByName are the extensions for which an agent on Windows knows the interpreter.
var ranByName = []string{".ps1", ".rb", ".pp", ".bat", ".cmd", ".exe", ".com"}

// checkScript refuses a file that no node could run, before it is sent to all of them.
func checkScript(path string) error {
	file, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	begin, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return unread("the script", path, err)
	}
	if wrong := notRunnable(path, begin); wrong != "" {
		return usageError{fault.New(fault.Invalid, "%s cannot be run: %s. Nothing was sent", path, wrong)}
	}
	return nil
}

// notRunnable says what keeps a file that begins so from being run; empty: nothing that is seen here.
func notRunnable(path string, begin []byte) string {
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	switch {
	case len(begin) == 0:
		return "it is empty"
	case slices.Contains(ranByName, strings.ToLower(filepath.Ext(path))):
		return ""
	case slices.ContainsFunc(programs, func(magic []byte) bool { return bytes.HasPrefix(begin, magic) }):
		return ""
	case bytes.HasPrefix(begin, []byte("\xef\xbb\xbf#!")):
		return "there are invisible bytes (a byte order mark) before its #!; save it as UTF-8 without them"
	case !bytes.HasPrefix(begin, []byte("#!")):
		return "it has no first line that names its interpreter, such as #!/bin/sh or #!/usr/bin/env python3; add one"
	case bytes.HasSuffix(line, []byte("\r")):
		return "its lines end as on Windows, so that its interpreter would be " + strings.TrimSpace(string(line[2:])) +
			" with a carriage return; convert it, such as with dos2unix"
	case len(bytes.TrimSpace(line[2:])) == 0:
		return "its first line is #! without an interpreter; write one, such as #!/bin/sh"
	}
	return ""
}
