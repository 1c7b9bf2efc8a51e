package agent

import "os"

// ownerOf is nil: files have other owners there, and inherit them.
func ownerOf(os.FileInfo) *owner { return nil }
