//go:build unix

package agent

// defaultDir holds settings and certificates.
func defaultDir() string { return "/etc/tutti-agent" }

// defaultData holds what changes.
func defaultData() string { return "/var/lib/tutti-agent" }
