// Package catalog is the form in which a catalog is stored, served and kept by its node.
//
// A catalog is stored once, under the digest of its normalised form: Normalise makes this form from the output
// of a compiler. For an agent, Render puts the stamp of one compilation before the stored bytes; it decodes
// nothing. Split takes a document apart.
//
// Errors: Invalid for input that is no catalog, Internal for bytes that are no stored document.
//
// Concurrency: functions without state.
//
// Sources: catalog wire format 2 as Puppet 7 and 8 write and read it; RFC 8259.
package catalog

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// A stored document is one JSON object without any spaces:
//
//	{"exported":[resources],"catalog":{the agent's catalog without its stamp}}
//
// The catalog comes last and the stamp is left out, so that the agent's form is
// a short head before the document's own tail: nothing is decoded to serve it.
const (
	headExported = `{"exported":`
	headCatalog  = `,"catalog":`
)

// Stamp is what differs between two equal catalogs: which compilation it was.
type Stamp struct {
	Version fleet.Digest // shown as version (config_version) and code_id
	UUID    string       // catalog_uuid
	// Static keeps the inlined file metadata; without it they are left out for an
	// agent that did not ask for a static catalog.
	Static bool
}

// Normalise brings what a compiler gave, a catalog and its exported resources, into the stored form and names it by its
// digest. Equal compilations give the same bytes: the stamp is dropped; keys of
// the catalog, of resources and of parameters are sorted, tags and classes too;
// strings are escaped in one way only. What has meaning is kept as it came: the
// order of resources and edges, the order of keys inside parameter values, every
// digit of a number. Bytes that are no UTF-8 become U+FFFD, as an agent would
// refuse them. Invalid for anything that is not a catalog.
func Normalise(catalog, exports json.RawMessage) (document []byte, digest fleet.Digest, err error) {
	catalog, err = Compact("catalog", catalog)
	if err != nil {
		return nil, "", err
	}
	exported, err := Compact("list of exported resources", OrEmpty(exports))
	if err != nil {
		return nil, "", err
	}
	out := make([]byte, 0, len(catalog)+len(exported)+64)
	out = append(out, headExported...)
	if out, err = appendResources(out, exported); err != nil {
		return nil, "", err
	}
	out = append(out, headCatalog...)
	if out, err = appendCatalog(out, catalog); err != nil {
		return nil, "", err
	}
	out = append(out, '}')
	return out, fleet.DigestOf(out), nil
}

// OrEmpty is a list, also where a compiler gave none.
func OrEmpty(list []byte) []byte {
	if trimmed := bytes.TrimSpace(list); len(trimmed) == 0 || string(trimmed) == "null" {
		return []byte("[]")
	}
	return list
}

// Compact is valid JSON without spaces; Invalid, with the name of what it is, for anything else.
func Compact(what string, raw []byte) ([]byte, error) {
	out, err := jsontext.AppendFormat(make([]byte, 0, len(raw)), raw, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the compiler's %s is not JSON", what)
	}
	return out, nil
}

func appendCatalog(out, catalog []byte) ([]byte, error) {
	if catalog[0] != '{' {
		return nil, fault.New(fault.Invalid, "the compiler's catalog is not a JSON object")
	}
	found, all := false, sorted(catalog)
	out = append(out, '{')
	for _, m := range slices.DeleteFunc(all, isStamp) {
		out = appendName(out, m)
		switch string(m.Name) {
		case `"resources"`:
			found = true
			var err error
			if out, err = appendResources(out, m.Value); err != nil {
				return nil, err
			}
		case `"tags"`, `"classes"`:
			out = appendSet(out, m.Value)
		case `"metadata"`, `"recursive_metadata"`:
			out = appendSorted(out, m.Value)
		default:
			out = append(out, m.Value...)
		}
	}
	if !found {
		return nil, fault.New(fault.Invalid, "the compiler's catalog has no list of resources")
	}
	return append(out, '}'), nil
}

func isStamp(m Member) bool {
	switch string(m.Name) {
	case `"version"`, `"code_id"`, `"catalog_uuid"`:
		return true
	}
	return false
}

func appendResources(out, list []byte) ([]byte, error) {
	if list[0] != '[' {
		return nil, fault.New(fault.Invalid, "the compiler's resources are not a JSON array")
	}
	out = append(out, '[')
	for i, resource := range Elements(list) {
		if resource[0] != '{' {
			return nil, fault.New(fault.Invalid, "the compiler's resource %d is not a JSON object", i)
		}
		out = appendResource(append(out, comma(out)...), resource)
	}
	return append(out, ']'), nil
}

func appendResource(out, resource []byte) []byte {
	out = append(out, '{')
	for _, m := range sorted(resource) {
		out = appendName(out, m)
		switch string(m.Name) {
		case `"tags"`:
			out = appendSet(out, m.Value)
		case `"parameters"`:
			out = appendSorted(out, m.Value)
		default:
			out = append(out, m.Value...)
		}
	}
	return append(out, '}')
}

// appendSorted writes an object with its own keys sorted and its values as they are.
func appendSorted(out, object []byte) []byte {
	if object[0] != '{' {
		return append(out, object...)
	}
	out = append(out, '{')
	for _, m := range sorted(object) {
		out = append(appendName(out, m), m.Value...)
	}
	return append(out, '}')
}

// appendSet writes a list whose order has no meaning in the order of its bytes.
func appendSet(out, list []byte) []byte {
	if list[0] != '[' {
		return append(out, list...)
	}
	var items [][]byte
	for _, item := range Elements(list) {
		items = append(items, item)
	}
	slices.SortFunc(items, bytes.Compare)
	out = append(out, '[')
	for _, item := range items {
		out = append(append(out, comma(out)...), item...)
	}
	return append(out, ']')
}

// appendName writes a member's name, with a comma where one is due.
func appendName(out []byte, m Member) []byte {
	out = append(out, comma(out)...)
	return append(append(out, m.Name...), ':')
}

// comma is what must stand before the next item of the list or object that out
// ends in.
func comma(out []byte) string {
	if last := out[len(out)-1]; last == '{' || last == '[' {
		return ""
	}
	return ","
}

// Split takes a stored document apart: the exported resources (a JSON array) and
// the catalog without its stamp (a JSON object). Both share the document's bytes.
func Split(document []byte) (exported, catalog []byte, err error) {
	rest, ok := bytes.CutPrefix(document, []byte(headExported))
	if ok && len(rest) > 0 {
		n := end(rest)
		exported, rest = rest[:n:n], rest[n:]
		rest, ok = bytes.CutPrefix(rest, []byte(headCatalog))
	}
	if !ok || len(rest) < len(`{"resources":[]}}`) || rest[0] != '{' || !bytes.HasSuffix(rest, []byte("}}")) {
		return nil, nil, fault.New(fault.Internal, "%d bytes are not a stored catalog document", len(document))
	}
	n := len(rest) - 1
	return exported, rest[:n:n], nil
}

// Render gives the catalog as an agent reads it.
func Render(document []byte, s Stamp) ([]byte, error) {
	_, catalog, err := Split(document)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(catalog)+256)
	out = AppendStamp(out, s)
	if s.Static {
		return append(out, catalog[1:]...), nil
	}
	for m := range Members(catalog) {
		if string(m.Name) != `"metadata"` && string(m.Name) != `"recursive_metadata"` {
			out = append(append(append(out, m.Name...), ':'), m.Value...)
			out = append(out, ',')
		}
	}
	out[len(out)-1] = '}'
	return out, nil
}

// AppendStamp begins an object with the stamp; a catalog has at least one more
// key, so it ends in a comma.
func AppendStamp(out []byte, s Stamp) []byte {
	out = append(out, `{"version":`...)
	out = appendString(out, string(s.Version))
	out = append(out, `,"code_id":`...)
	if s.Version == "" {
		out = append(out, "null"...)
	} else {
		out = appendString(out, string(s.Version))
	}
	out = append(out, `,"catalog_uuid":`...)
	return append(appendString(out, s.UUID), ',')
}

func appendString(out []byte, s string) []byte {
	out, _ = jsontext.AppendQuote(out, s) // an error only says that bytes were replaced by U+FFFD
	return out
}

// Rich reports whether a catalog (or a document) holds Puppet's rich data, such
// as Sensitive or Deferred values. A quote inside a string is escaped, so that
// only a key can look like this; one that merely ends like it does no harm, as
// agents read plain data under the rich name too.
func Rich(catalog []byte) bool {
	const key = `__ptype":` // quotes are everywhere: to look for one costs ten times as much
	for {
		i := bytes.Index(catalog, []byte(key))
		if i < 0 {
			return false
		}
		if i > 0 && catalog[i-1] == '"' {
			return true
		}
		catalog = catalog[i+len(key):]
	}
}
