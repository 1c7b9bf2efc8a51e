package pki

import (
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fleet"
)

// inventoryLine is one certificate in a Puppet CA's inventory.txt:
//
//	0x0001 2026-01-01T00:00:00UTC 2031-01-01T00:00:00UTC /CN=web1.example.com
type inventoryLine struct {
	serial              *big.Int
	notBefore, notAfter time.Time
	name                fleet.Certname
}

const inventoryTime = "2006-01-02T15:04:05MST"

// maxSkippedLines bounds what is said about a file that is no inventory at all.
const maxSkippedLines = 20

// parseInventory reads what it can and returns lines that it cannot.
func parseInventory(content []byte) (lines []inventoryLine, skipped []string) {
	for text := range strings.Lines(string(content)) {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		if line, ok := parseInventoryLine(text); ok {
			lines = append(lines, line)
		} else if len(skipped) < maxSkippedLines {
			skipped = append(skipped, shorten(text))
		}
	}
	return lines, skipped
}

func parseInventoryLine(text string) (inventoryLine, bool) {
	fields := strings.Fields(text)
	if len(fields) < 4 {
		return inventoryLine{}, false
	}
	number := strings.TrimPrefix(fields[0], "0x")
	if len(number) > 40 {
		return inventoryLine{}, false
	}
	serial, ok := new(big.Int).SetString(number, 16)
	if !ok || serial.Sign() <= 0 {
		return inventoryLine{}, false
	}
	notBefore, errBefore := time.Parse(inventoryTime, fields[1])
	notAfter, errAfter := time.Parse(inventoryTime, fields[2])
	if errBefore != nil || errAfter != nil {
		return inventoryLine{}, false
	}
	cn, found := strings.CutPrefix(strings.Join(fields[3:], " "), "/CN=")
	name, err := fleet.ParseCertname(cn)
	if !found || err != nil {
		return inventoryLine{}, false
	}
	return inventoryLine{serial: serial, notBefore: notBefore.UTC(), notAfter: notAfter.UTC(), name: name}, true
}

func shorten(text string) string {
	if len(text) <= 80 {
		return strings.ToValidUTF8(text, "?")
	}
	cut := 80
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.ToValidUTF8(text[:cut], "?")
}
