//go:build !linux || !(amd64 || arm64)

package cell

// Main does nothing: there are no cells on this system.
func Main() {}
