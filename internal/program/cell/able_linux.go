//go:build !(amd64 || arm64)

package cell

// able tells that this program can be its own guard.
const able = false
