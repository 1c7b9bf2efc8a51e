package variants

import (
	"bytes"
	"crypto/md5" //nolint:gosec // Puppet's checksums, nothing is protected by it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Difference is one parameter of a resource that a node has otherwise than its catalog says.
type Difference struct {
	Parameter string
	Catalog   json.RawMessage
	Live      json.RawMessage
}

// Drift compares a resource as a catalog has it with the same as it is on the node, parameter by parameter. Only what both have counts: a node tells nothing of
// `require`, and a catalog nothing of what it leaves alone. What cannot be told is no difference: secrets, a checksum of another kind, an owner by name and by
// number.
func Drift(kind string, catalog, live json.RawMessage) ([]Difference, error) {
	var says, is map[string]json.RawMessage
	for text, into := range map[*json.RawMessage]*map[string]json.RawMessage{&catalog: &says, &live: &is} {
		if err := json.Unmarshal(*text, into); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "parameters of a resource")
		}
	}
	var all []Difference
	for _, name := range slices.Sorted(maps.Keys(says)) {
		if value, both := is[name]; both && !agrees(strings.ToLower(kind), name, words(says[name]), words(value)) {
			all = append(all, Difference{Parameter: name, Catalog: says[name], Live: value})
		}
	}
	return all, nil
}

// words are a value as Puppet compares it: one thing is a list of one, and numbers and texts are the same. nil: it has no value, or one that is not shown.
func words(value json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	} else if list == nil {
		return nil // null
	}
	all := make([]string, 0, len(list))
	for _, one := range list {
		word := string(one)
		if strings.HasPrefix(word, `"`) {
			_ = json.Unmarshal(one, &word) // it was read once
		}
		if word == "null" || strings.Contains(strings.ToLower(word), "[redacted]") || strings.Contains(word, `"__ptype"`) {
			return nil
		}
		all = append(all, word)
	}
	slices.Sort(all)
	return all
}

// agrees says whether what a catalog says of a parameter, and what is, are the same, or cannot be told apart.
func agrees(kind, name string, says, is []string) bool {
	if says == nil || is == nil || slices.Equal(says, is) {
		return true
	}
	if len(says) != 1 || len(is) != 1 {
		return false
	}
	say, be := says[0], is[0]
	switch name {
	case "ensure":
		return ensures(kind, say, be)
	case "mode":
		return sameMode(say, be)
	case "content":
		return sameContent(say, be)
	case "owner", "group", "gid":
		return isNumber(say) != isNumber(be)
	}
	return false
}

// ensures says whether a thing that is so fulfils what is asked of it: a version of a package is present, and so is a directory.
func ensures(kind, say, be string) bool {
	gone := func(word string) bool { return word == "absent" || word == "purged" || word == "false" }
	switch {
	case kind == "service":
		running := map[string]string{"true": "running", "false": "stopped"}
		return orSame(running, say) == orSame(running, be)
	case gone(say) || gone(be):
		return gone(say) && gone(be) && (say != "purged" || be == "purged")
	}
	return slices.Contains([]string{"present", "installed", "latest", "held", "true"}, say)
}

func orSame(other map[string]string, word string) string {
	if o, ok := other[word]; ok {
		return o
	}
	return word
}

// sameMode compares modes: 644 is 0644; one in words, such as u=rw, cannot be told.
func sameMode(say, be string) bool {
	a, notOctal := strconv.ParseUint(say, 8, 32)
	b, err := strconv.ParseUint(be, 8, 32)
	return notOctal != nil || err == nil && a == b
}

// sameContent compares a text with a checksum as nodes have it: {sha256}12ab. Of another kind of checksum it cannot be told.
func sameContent(say, be string) bool {
	method, sum, ok := strings.Cut(strings.TrimPrefix(be, "{"), "}")
	if !ok || !strings.HasPrefix(be, "{") {
		return false
	}
	if asked, _, isSum := strings.Cut(say, "}"); isSum && strings.HasPrefix(asked, "{") && isHex(say[len(asked)+1:]) {
		return asked != "{"+method // the same kind of sum, and not the same
	}
	switch method {
	case "sha256":
		own := sha256.Sum256([]byte(say))
		return hex.EncodeToString(own[:]) == sum
	case "md5":
		own := md5.Sum([]byte(say)) //nolint:gosec // see above
		return hex.EncodeToString(own[:]) == sum
	}
	return true
}

func isHex(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) >= 32
}

func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// Canonical is parameters in one spelling for each value: members are sorted, without spaces. Those that are named are left out.
func Canonical(parameters json.RawMessage, without []string) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(parameters))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil || values == nil {
		return nil, fault.New(fault.Invalid, "the parameters of a resource are no object")
	}
	for _, name := range without {
		delete(values, name)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(values)
	return bytes.TrimSpace(b.Bytes()), err
}
