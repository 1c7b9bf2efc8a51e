package orders

import (
	_ "embed" // the shim
	"encoding/base64"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// shim reads parameters as JSON from standard input and gives a script those that
// it declares. $task is the script; it is set in front.
//
//go:embed powershell.ps1
var shimText string

func powershellFlags() []string {
	return []string{"-NoProfile", "-NonInteractive", "-NoLogo", "-ExecutionPolicy", "Bypass"}
}

// shim runs a script with named parameters. The shim itself goes as one encoded
// argument, so that no shell can misread it; parameters are only on standard input.
func (n *Node) shim(script string) Command {
	text := "$task = '" + strings.ReplaceAll(script, "'", "''") + "'\n" + shimText
	return program([]string{n.PowerShell}, append(powershellFlags(), "-EncodedCommand", encoded(text))...)
}

// encoded is base64 of UTF-16, little end first, as PowerShell wants it.
func encoded(text string) string {
	var bytes []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		bytes = binary.LittleEndian.AppendUint16(bytes, unit)
	}
	return base64.StdEncoding.EncodeToString(bytes)
}
