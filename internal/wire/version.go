package wire

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// Version is a version of the protocol.
type Version int

// The versions there are.
const (
	V1 Version = 1 // binary
	V2 Version = 2 // text
)

// Binary tells which kind of websocket message carries it.
func (v Version) Binary() bool { return v == V1 }

// Decode reads a message. It returns what could be read, for the log, also with an
// error.
func (v Version) Decode(payload []byte) (Message, error) {
	if v == V1 {
		return decode1(payload)
	}
	return decode2(payload)
}

// Append writes a message at the end of dst.
func (v Version) Append(dst []byte, m Message) ([]byte, error) {
	if err := m.Check(); err != nil {
		return dst, err
	}
	if v == V1 {
		return append1(dst, m)
	}
	return append2(dst, m)
}

// strict refuses keys that nobody reads. Two equal keys are let pass: a module's
// result may have them, and what is passed on is written anew.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true))

// decoded reads JSON. Agents pass on what programs write as it is, so a text may be no UTF-8: what cannot be read in it becomes U+FFFD.
// Without that nobody would learn how such a program ended.
func decoded(text []byte, to any, options json.Options) error {
	err := json.Unmarshal(text, to, options)
	if err == nil {
		return nil
	}
	mended, ill := jsontext.AppendFormat(nil, text, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(false))
	if ill != nil {
		return err
	}
	return json.Unmarshal(mended, to, options)
}

// why is what a JSON parser found, in a line that may be shown: where and what, without
// the value itself and without names of our own types.
func why(err error) string {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return strings.TrimPrefix(syntax.Error(), "jsontext: ")
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		at := string(semantic.JSONPointer)
		switch {
		case errors.Is(semantic.Err, json.ErrUnknownName):
			return "the key " + at + " is not known"
		case at != "":
			return "the value of " + at + " has the wrong type"
		}
	}
	return "it has the wrong type"
}

func undecodable(field string, err error) error {
	return fault.Wrap(fault.Invalid, err, "%s: it is not the JSON object it has to be: %s", field, why(err))
}
