//go:build !linux

package backup

import "errors"

// A server runs on Linux, and so do its backups.
func syncAll(string) error { return errors.ErrUnsupported }
