package catalog

import (
	"bytes"
	"slices"
)

// Differing names the resources in which two stored documents differ, at most so many.
func Differing(a, b []byte, most int) []string {
	was, is := resourcesOf(a), resourcesOf(b)
	var names []string
	for name, text := range was {
		if !bytes.Equal(text, is[name]) {
			names = append(names, name)
		}
	}
	for name := range is {
		if was[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = append(names, "the order of resources, or edges")
	}
	slices.Sort(names)
	return names[:min(most, len(names))]
}

// resourcesOf is a document's resources by their references; exported ones begin
// with @@.
func resourcesOf(document []byte) map[string][]byte {
	found := map[string][]byte{}
	exported, catalog, err := Split(document)
	if err != nil {
		return found
	}
	add := func(prefix string, list []byte) {
		for _, resource := range Elements(list) {
			var kind, title string
			for m := range Members(resource) {
				switch string(m.Name) {
				case `"type"`:
					kind = Unquoted(m.Value)
				case `"title"`:
					title = Unquoted(m.Value)
				}
			}
			found[prefix+kind+"["+title+"]"] = resource
		}
	}
	add("@@", exported)
	for m := range Members(catalog) {
		if string(m.Name) == `"resources"` {
			add("", m.Value)
		}
	}
	return found
}
