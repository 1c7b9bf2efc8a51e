package ddl

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// kind is what a value of a DDL is.
type kind string

const (
	null    kind = "nil"
	boolean kind = "boolean"
	number  kind = "number"
	text    kind = "text"
	symbol  kind = "symbol" // only in Ruby
	regex   kind = "regular expression"
	list    kind = "list"
	table   kind = "table" // a hash of Ruby, an object of JSON
)

// value is a literal of either language.
type value struct {
	line     int
	kind     kind
	text     string // of a text, a symbol, a regular expression; digits of a number
	yes      bool   // of a boolean
	elements []value
	pairs    []pair
}

// pair is a member of a table.
type pair struct {
	key   string
	line  int
	value value
}

// at is the error of a line.
func at(line int, format string, args ...any) error {
	return fault.New(fault.Invalid, "line %d: %s", line, fmt.Sprintf(format, args...))
}

// find is a member of a table.
func (v value) find(key string) (value, bool) {
	for _, p := range v.pairs {
		if p.key == key {
			return p.value, true
		}
	}
	return value{line: v.line, kind: null}, false
}

// words is the text of a member; empty if it is not there.
func (v value) words(key string) (string, error) {
	found, there := v.find(key)
	switch {
	case !there || found.kind == null:
		return "", nil
	case found.kind == text || found.kind == symbol || found.kind == number:
		return found.text, nil
	}
	return "", at(found.line, "%s must be a text, not a %s", key, found.kind)
}

// number is the number of a member; 0 if it is not there.
func (v value) number(key string) (float64, error) {
	found, there := v.find(key)
	if !there || found.kind == null {
		return 0, nil
	}
	n, err := strconv.ParseFloat(found.text, 64)
	if err != nil || found.kind != number && found.kind != text || n < 0 {
		return 0, at(found.line, "%s must be a number from 0 on", key)
	}
	return n, nil
}

// truth is the boolean of a member; false if it is not there.
func (v value) truth(key string) (bool, error) {
	found, there := v.find(key)
	if !there || found.kind == null {
		return false, nil
	}
	if found.kind != boolean {
		return false, at(found.line, "%s must be true or false", key)
	}
	return found.yes, nil
}

// json is the value as JSON; symbols and regular expressions are texts.
func (v value) json() jsontext.Value {
	switch v.kind {
	case null:
		return jsontext.Value("null")
	case boolean:
		return jsontext.Value(strconv.FormatBool(v.yes))
	case number:
		return jsontext.Value(v.text)
	case list:
		all := []jsontext.Value{}
		for _, e := range v.elements {
			all = append(all, e.json())
		}
		return data(all)
	case table:
		all := map[string]jsontext.Value{}
		for _, p := range v.pairs {
			all[p.key] = p.value.json()
		}
		return data(all)
	case text, symbol, regex:
	}
	return data(v.text)
}

// data is what is made here, as JSON.
func data(of any) jsontext.Value {
	made, err := json.Marshal(of, json.Deterministic(true))
	if err != nil {
		panic(err) // it is made of texts and numbers that were read
	}
	return made
}
