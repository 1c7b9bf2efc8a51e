package agent

import (
	"os"
	"path/filepath"
)

// defaultDir holds settings and certificates.
func defaultDir() string { return filepath.Join(programData(), "tutti-agent") }

// defaultData holds what changes.
func defaultData() string { return filepath.Join(programData(), "tutti-agent", "data") }

func programData() string {
	if dir := os.Getenv("ProgramData"); dir != "" {
		return dir
	}
	return `C:\ProgramData`
}
