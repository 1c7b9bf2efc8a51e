package truth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ofOneCompilation differ between two compilations of the same.
var ofOneCompilation = []string{"version", "catalog_uuid", "code_id"}

// moment is when a directory was made, which metadata tells of directories instead of a checksum of content.
var moment = regexp.MustCompile(`^\{[cm]time\}`)

// address is where an object is in a process's memory, or the object's number there: Ruby's inspect shows the one, that of Sensitive the other,
// wherever code puts such text, in contents of files too.
var address = regexp.MustCompile(`(#(?:<|\\u003c)[A-Z][A-Za-z:]*:0x)[0-9a-f]{16}|(#(?:<|\\u003c)Sensitive \[value redacted\]:)[0-9]+`)

// binary is a value of the type Binary: text in base64.
var binary = regexp.MustCompile(`("__ptype":"Binary","__pvalue":")([A-Za-z0-9+/]+=*)"`)

// withoutChance is a text without what depends on the process.
func withoutChance(text []byte) []byte {
	text = binary.ReplaceAllFunc(text, func(value []byte) []byte {
		parts := binary.FindSubmatch(value)
		within, err := base64.StdEncoding.DecodeString(string(parts[2]))
		if err != nil {
			return value
		}
		return fmt.Appendf(nil, `%s%s"`, parts[1], base64.StdEncoding.EncodeToString(address.ReplaceAll(within, []byte("${1}${2}"))))
	})
	return address.ReplaceAll(text, []byte("${1}${2}"))
}

// SameError says whether two messages of failed compilations are the same, but for what depends on the process.
func SameError(plain, ours string) bool {
	return bytes.Equal(withoutChance([]byte(plain)), withoutChance([]byte(ours)))
}

// LeftToTheAgent says whether plain Puppet failed for a file's source that is no URL, which it looks for while it makes a static catalog. Tutti makes
// the catalog, and the agent judges the source, as with a catalog that is not static: docs/compiler-differences.md says so.
func LeftToTheAgent(message string) bool {
	return strings.HasPrefix(message, "Could not understand URL puppet:")
}

// OfFiles is what a static catalog has, and one that is not static has not.
var OfFiles = []string{"metadata", "recursive_metadata"}

// Difference tells how a catalog differs from the one that plain Puppet gave: the
// resources, their parameters, tags and places, and the edges, all in order. Empty: they
// are equal, but for what belongs to one compilation only, and for the keys that are not compared.
func Difference(plain, ours json.RawMessage, ignored ...string) (string, error) {
	want, err := ParseObject(withoutChance(plain))
	if err != nil {
		return "", fmt.Errorf("read plain Puppet's catalog: %w", err)
	}
	got, err := ParseObject(withoutChance(ours))
	if err != nil {
		return "", fmt.Errorf("read our catalog: %w", err)
	}
	want, got = withoutMeaningless(want), withoutMeaningless(got)
	var found []string
	for _, key := range keysOf(want, got) {
		if slices.Contains(ofOneCompilation, key) || slices.Contains(ignored, key) {
			continue
		}
		a, aList := want.get(key).([]any)
		b, bList := got.get(key).([]any)
		if aList && bList {
			found = append(found, differentItems(key, a, b)...)
		} else if x, y := show(want.get(key)), show(got.get(key)); x != y {
			found = append(found, fmt.Sprintf("%s\n  plain %s\n  ours  %s", key, x, y))
		}
	}
	return strings.Join(found, "\n"), nil
}

// withoutMeaningless sorts what is a set: the keys of the catalog, of resources, of
// parameters and of files' metadata, tags and classes. Tutti stores catalogs so, because equal ones must have
// equal bytes.
func withoutMeaningless(catalog Object) Object {
	out := setsSorted(catalog)
	for i, m := range out {
		if metadata, ok := m.Value.(Object); ok && (m.Key == "metadata" || m.Key == "recursive_metadata") {
			out[i].Value = nil
			if files := ofFiles(metadata, catalog); len(files) > 0 {
				out[i].Value = metadataSorted(files)
			}
			continue
		}
		list, isList := m.Value.([]any)
		if m.Key != "resources" || !isList {
			continue
		}
		resources := make([]any, len(list))
		for j, item := range list {
			resources[j] = item
			if resource, ok := item.(Object); ok {
				resources[j] = setsSorted(resource)
			}
		}
		out[i].Value = resources
	}
	return out
}

func setsSorted(o Object) Object {
	out := byKey(o)
	for i, m := range out {
		switch list := m.Value.(type) {
		case []any:
			if m.Key == "tags" || m.Key == "classes" {
				out[i].Value = slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(show(a), show(b)) })
			}
		case Object:
			if m.Key == "parameters" {
				out[i].Value = byKey(list)
			}
		}
	}
	return out
}

// ofFiles is metadata of the files that a catalog has. Puppet adds that of exported ones, too, which no agent looks at.
func ofFiles(metadata, catalog Object) Object {
	files := map[string]bool{}
	list, _ := catalog.get("resources").([]any)
	for _, item := range list {
		if resource, ok := item.(Object); ok && resource.get("type") == "File" {
			title, _ := resource.get("title").(string)
			files[title] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(metadata), func(m Member) bool { return !files[m.Key] })
}

// metadataSorted sorts metadata: the keys of its objects, and the files of a directory, which come as its file system has them. The
// moment that stands for a directory's content is left out.
func metadataSorted(value any) any {
	switch value := value.(type) {
	case Object:
		out := byKey(value)
		for i, m := range out {
			out[i].Value = metadataSorted(m.Value)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = metadataSorted(item)
		}
		if !slices.ContainsFunc(out, func(item any) bool { return pathOf(item) == nil }) {
			slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(show(pathOf(a)), show(pathOf(b))) })
		}
		return out
	case string:
		if moment.MatchString(value) {
			return "then"
		}
	}
	return value
}

// pathOf is where in its directory the file is that an item of recursive_metadata tells of; nil: it is no such item.
func pathOf(item any) any {
	file, _ := item.(Object)
	return file.get("relative_path")
}

func byKey(o Object) Object {
	return slices.SortedFunc(slices.Values(o), func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
}

func keysOf(objects ...Object) []string {
	var keys []string
	for _, o := range objects {
		for _, m := range o {
			if !slices.Contains(keys, m.Key) {
				keys = append(keys, m.Key)
			}
		}
	}
	return keys
}

// shownItems is how many differences of one list are told.
const shownItems = 4

// differentItems compares two lists item by item; one that is only in the other place
// is told by its place.
func differentItems(key string, want, got []any) []string {
	var found []string
	for i := range max(len(want), len(got)) {
		a, b := "nothing", "nothing"
		if i < len(want) {
			a = show(want[i])
		}
		if i < len(got) {
			b = show(got[i])
		}
		if a == b {
			continue
		}
		if found = append(found, fmt.Sprintf("%s[%d]\n  plain %.2000s\n  ours  %.2000s", key, i, a, b)); len(found) == shownItems {
			break
		}
	}
	return found
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// ParseObject reads a JSON object; those within are Objects, too.
func ParseObject(text []byte) (Object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := readOrdered(decoder)
	if err != nil {
		return nil, err
	}
	object, ok := value.(Object)
	if !ok {
		return nil, errors.New("it is no object")
	}
	return object, nil
}

func readOrdered(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("read a token: %w", err)
	}
	switch token {
	case json.Delim('{'):
		object := Object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("read a key: %w", err)
			}
			value, err := readOrdered(d)
			if err != nil {
				return nil, err
			}
			object = append(object, Member{key.(string), value})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := readOrdered(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}
