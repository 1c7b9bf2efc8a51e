package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/task/datatype"
)

// maxParameters is how long parameters may be as JSON, in bytes.
const maxParameters = 16 << 20

// Check says whether given, a JSON object, is what the task takes, and returns it
// with the defaults of what was left out. Invalid lists everything that is wrong.
// Names that start with an underscore are between the tools, and pass.
func (t Task) Check(ctx context.Context, v Version, given json.RawMessage) (json.RawMessage, error) {
	values, err := decode(given)
	if err != nil {
		return nil, err
	}
	if t.Metadata.Parameters == nil {
		return encode(values)
	}
	resolve := aliases(ctx, v)
	wrong := t.strangers(values)
	for _, name := range slices.Sorted(maps.Keys(t.Metadata.Parameters)) {
		complaint, err := t.Metadata.Parameters[name].check(name, values, resolve)
		if err != nil {
			return nil, err
		}
		if complaint != "" {
			wrong = append(wrong, complaint)
		}
	}
	if len(wrong) > 0 {
		return nil, fault.New(fault.Invalid, "the parameters do not fit the task %s: %s; see `tutti task show %s`", t.Name, strings.Join(wrong, "; "), t.Name)
	}
	return encode(values)
}

// strangers complains of parameters that the task does not have.
func (t Task) strangers(values map[string]any) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, known := t.Metadata.Parameters[name]; !known && !strings.HasPrefix(name, "_") {
			wrong = append(wrong, fmt.Sprintf("there is no parameter %.80q", name))
		}
	}
	return wrong
}

// check complains of a value that does not fit, or gives the default in values.
func (p Parameter) check(name string, values map[string]any, resolve datatype.Resolver) (complaint string, err error) {
	value, given := values[name]
	if !given && p.Default != nil {
		values[name] = p.Default
		return "", nil // whoever wrote the task answers for it
	}
	err = p.kind.Check(value, resolve)
	wrong, mismatch := errors.AsType[*datatype.Mismatch](err)
	switch {
	case err == nil:
		return "", nil
	case !mismatch:
		return "", fault.New(fault.Invalid, "the parameter %s cannot be checked: %s", name, err)
	case !given:
		return fmt.Sprintf("%s (%s) is required", name, p.kind), nil
	case p.Secret(): // even a key may be one
		return fmt.Sprintf("%s expects %s", name, p.kind), nil
	case wrong.Path == "":
		return name + " " + wrong.Error(), nil
	case wrong.Path[0] == '[':
		return name + wrong.Error(), nil
	default:
		return name + "." + wrong.Error(), nil
	}
}

func decode(given json.RawMessage) (map[string]any, error) {
	if len(given) > maxParameters {
		return nil, fault.New(fault.Invalid, "parameters have at most %d bytes as JSON, these have %d; put large content into a file", maxParameters, len(given))
	}
	values := map[string]any{}
	if len(bytes.TrimSpace(given)) == 0 {
		return values, nil
	}
	d := json.NewDecoder(bytes.NewReader(given))
	d.UseNumber()
	if err := d.Decode(&values); err != nil || values == nil || d.More() {
		return nil, fault.New(fault.Invalid, "parameters are one JSON object, such as {\"name\": \"ntp\"}")
	}
	return values, nil
}

func encode(values map[string]any) (json.RawMessage, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("write parameters: %w", err)
	}
	return text, nil
}

// aliases finds types that modules define, in types/*.pp.
func aliases(ctx context.Context, v Version) datatype.Resolver {
	known := map[string]*datatype.Type{}
	return func(name string) (*datatype.Type, error) {
		if t, ok := known[name]; ok {
			return t, nil
		}
		t, err := readAlias(ctx, v, name)
		if err == nil {
			known[name] = t
		}
		return t, err
	}
}

// maxAlias is how long a file that defines a type may be, in bytes.
const maxAlias = 64 << 10

func readAlias(ctx context.Context, v Version, name string) (*datatype.Type, error) {
	parts := strings.Split(strings.ToLower(name), "::")
	where := strings.Join(parts[1:], "/") + ".pp"
	if len(parts) == 1 {
		where = "init.pp"
	}
	files := v.Files(parts[0], "types")
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == where })
	if i < 0 {
		return nil, fault.New(fault.Invalid, "the type %s is not defined: no module has %s/types/%s", name, parts[0], where)
	}
	source, err := v.Read(ctx, files[i], maxAlias)
	if err != nil {
		return nil, err
	}
	found, t, err := datatype.ParseAlias(string(source))
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "%s is wrong %s", files[i].Name(), err)
	case found != name:
		return nil, fault.New(fault.Invalid, "%s defines %.80s, not %s", files[i].Name(), found, name)
	}
	return t, nil
}
