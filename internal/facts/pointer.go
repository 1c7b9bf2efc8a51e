package facts

import (
	"encoding/json"
	"strings"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
)

// below is the JSON pointer to a member.
func below(pointer, name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	}
	return pointer + "/" + name
}

// pointerSteps are the names in a JSON pointer that leads below the facts.
func pointerSteps(pointer string) ([]string, error) {
	if !strings.HasPrefix(pointer, "/") {
		return nil, fault.New(fault.Invalid, "%.200q is no path of a fact; it must look like /os/release/full", pointer)
	}
	if len(pointer) > scan.MaxPath {
		return nil, fault.New(fault.Invalid, "the path %.80q... has more than %d bytes", pointer, scan.MaxPath)
	}
	steps := strings.Split(pointer[1:], "/")
	for i, step := range steps {
		if strings.Contains(step, "~") {
			steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		}
	}
	return steps, nil
}

// AtPointer is the top-level fact that a JSON pointer leads to or below; empty for
// what is no pointer, and for all facts together.
func AtPointer(pointer string) string {
	steps, err := pointerSteps(pointer)
	if err != nil {
		return ""
	}
	return steps[0]
}

// Glance is what somebody sees who looks at a pointer in canonical facts: the value's
// text; of a pointer that ends in a slash only the names of the members. Empty: there is
// nothing. Positions of arrays are not looked into.
func Glance(values json.RawMessage, pointer string) (string, error) {
	pointer, names := strings.CutSuffix(pointer, "/")
	text := string(values)
	if pointer != "" {
		steps, err := pointerSteps(pointer)
		if err != nil {
			return "", err
		}
		for _, step := range steps {
			if text, err = memberOf(text, step); err != nil || text == "" {
				return "", err
			}
		}
	}
	if !names || !isObject(text) {
		return text, nil
	}
	var list strings.Builder
	err := eachMember(text, func(name, _ string) bool {
		list.Write(scan.AppendQuoted(nil, name))
		return true
	})
	return list.String(), err
}

// memberOf is the value of an object's member; empty if there is none.
func memberOf(object, name string) (value string, err error) {
	if !isObject(object) {
		return "", nil
	}
	err = eachMember(object, func(is, text string) bool {
		if is == name {
			value = text
		}
		return is < name // they are sorted
	})
	return value, err
}

func eachMember(object string, visit func(name, value string) (more bool)) error {
	c := cursor{Scanner: scan.Scanner{What: "facts", Src: object}}
	for {
		if err := c.next(); err != nil || !c.ok || !visit(c.name, c.value) {
			return err
		}
	}
}
