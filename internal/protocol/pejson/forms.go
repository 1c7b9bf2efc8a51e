package pejson

import (
	"encoding/json"
	"strings"
)

// Text is a text that some clients send as a number.
type Text string

// UnmarshalJSON takes both.
func (t *Text) UnmarshalJSON(text []byte) error {
	var number json.Number
	if len(text) > 0 && text[0] != '"' && json.Unmarshal(text, &number) == nil {
		*t = Text(number.String())
		return nil
	}
	return json.Unmarshal(text, (*string)(t))
}

// List is texts; some clients send one text, with commas.
type List []string

// UnmarshalJSON takes both.
func (l *List) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*l = ListOf(one)
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

// ListOf is the texts between commas; empty ones are left out.
func ListOf(text string) (all List) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}
