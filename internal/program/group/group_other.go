//go:build !unix

package group

import "os/exec"

// Own does nothing: this system has no process groups.
func Own(*exec.Cmd) {}
