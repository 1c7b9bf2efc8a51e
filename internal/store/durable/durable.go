//go:build !windows

// Package durable makes what was written to a directory survive a crash of the machine.
package durable

import (
	"errors"
	"os"
)

// SyncDir makes the names in a directory last: a file that was created, renamed or removed there stays so.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
