package pql

import (
	"fmt"
	"strings"
)

// MaskPart is one piece of a mask of to_string: a word like YYYY, or text.
type MaskPart struct {
	Word string // empty: Text
	Text string
}

// maskWords are the words that a mask may hold, longest first: those whose
// meaning is the same everywhere.
var maskWords = [...]string{"YYYY", "HH24", "HH12", "DDD", "YY", "MM", "DD", "HH", "MI", "SS", "MS", "US", "Q", "D"}

// Mask reads a mask. Letters that form no word are refused.
func Mask(mask string) ([]MaskPart, error) {
	var parts []MaskPart
	for mask != "" {
		word := ""
		for _, w := range maskWords {
			if strings.HasPrefix(mask, w) {
				word = w
				break
			}
		}
		switch c := mask[0]; {
		case word != "":
			parts = append(parts, MaskPart{Word: word})
			mask = mask[len(word):]
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '"' || c == '\\' || c >= 0x80:
			return nil, fmt.Errorf("the mask of to_string knows %s and punctuation, not %.10q", strings.Join(maskWords[:], " "), mask)
		default:
			parts = append(parts, MaskPart{Text: mask[:1]})
			mask = mask[1:]
		}
	}
	if parts == nil {
		return nil, fmt.Errorf("to_string needs a mask, like \"YYYY-MM-DD\"")
	}
	return parts, nil
}
