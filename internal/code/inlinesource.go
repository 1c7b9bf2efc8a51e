package code

import "strings"

// source is one source of a resource, split into what the file server needs.
type source struct {
	uri   string // without slashes at the end
	mount string
	path  string
}

// puppetSources returns a resource's sources; false when there is none, or one
// that is not this server's to answer.
func puppetSources(value any) ([]source, bool) {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var sources []source
	for _, item := range list {
		if item == nil {
			continue
		}
		uri, isText := item.(string)
		if !isText {
			return nil, false
		}
		s, ok := parseSource(uri)
		if !ok {
			return nil, false
		}
		sources = append(sources, s)
	}
	return sources, len(sources) > 0
}

// parseSource splits puppet:///mount/path. Puppet takes such a source as it is
// written: nothing in it is percent-encoded, and a query is cut off.
func parseSource(uri string) (source, bool) {
	uri = strings.TrimRight(uri, "/")
	key, ok := strings.CutPrefix(uri, "puppet:///")
	if !ok {
		return source{}, false
	}
	key, _, _ = strings.Cut(key, "?")
	mount, path, _ := strings.Cut(key, "/")
	return source{uri: uri, mount: mount, path: path}, true
}
