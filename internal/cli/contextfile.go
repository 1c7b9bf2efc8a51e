package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/fault"
)

// serverContext is a server that somebody asks, under a name: where it is, how it is known, and whose token is shown.
type serverContext struct {
	Name      string `yaml:"name"`
	Server    string `yaml:"server"`
	CAFile    string `yaml:"ca_file,omitempty"` // PEM; a path that is not absolute begins at the file's folder
	CA        string `yaml:"ca,omitempty"`      // PEM, instead of a file; neither: the CAs that the machine trusts
	TokenFile string `yaml:"token_file,omitempty"`
	User      string `yaml:"user,omitempty"` // who `tutti login` logs in

	dir string // of the file
}

// contexts is the file in which they are kept.
type contexts struct {
	Current  string          `yaml:"current,omitempty"`
	Contexts []serverContext `yaml:"contexts"`

	path string
}

// maxContextBytes is more than any such file has.
const maxContextBytes = 4 << 20

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// configDir is where this user's settings are; empty: nobody knows.
func (a *app) configDir() string {
	dir, home := a.system.Getenv("XDG_CONFIG_HOME"), a.system.Getenv("HOME")
	switch {
	case dir != "":
		return filepath.Join(dir, "tutti")
	case home != "":
		return filepath.Join(home, ".config", "tutti")
	case a.system.Getenv("APPDATA") != "":
		return filepath.Join(a.system.Getenv("APPDATA"), "tutti")
	}
	return ""
}

// contextPath is the file of contexts; empty: there is no place for one.
func (a *app) contextPath() string {
	if named := a.system.Getenv("TUTTI_CONTEXT_FILE"); named != "" {
		return named
	}
	if dir := a.configDir(); dir != "" {
		return filepath.Join(dir, "config.yaml")
	}
	return ""
}

// readContexts reads the file; one that is not there holds none.
func (a *app) readContexts() (contexts, error) {
	path := a.contextPath()
	if path == "" {
		return contexts{}, nil
	}
	text, err := readWhole(path, maxContextBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return contexts{path: path}, nil
	}
	if _, ok := errors.AsType[tooLarge](err); ok {
		return contexts{}, fault.New(fault.Invalid, "the contexts in %s: the file has more than %d bytes; is it the right one?", path, maxContextBytes)
	}
	if err != nil {
		return contexts{},
			fault.Wrap(fault.Invalid, err, "the contexts in %s cannot be read: %v; mend the file's owner and mode, or name another file with TUTTI_CONTEXT_FILE",
				path, reason(err))
	}
	all, err := parseContexts(text, path)
	if err != nil {
		return contexts{}, usageError{fault.New(fault.Invalid, "the contexts in %s: %v", path, err)}
	}
	return all, nil
}

// reason is the system's own word for what went wrong.
func reason(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// parseContexts reads the text of a file. Errors name the line and the key.
func parseContexts(text []byte, path string) (contexts, error) {
	all := contexts{path: path}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return all, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 {
		return all, nil
	}
	err := eachKey(document.Content[0], "", func(key string, value *yaml.Node) error {
		switch key {
		case "current":
			return takeText(&all.Current, key, value)
		case "contexts":
			return eachItem(value, key, func(i int, item *yaml.Node) error {
				one, err := parseContext(item, fmt.Sprintf("contexts[%d].", i))
				one.dir = filepath.Dir(path)
				if err == nil && all.find(one.Name) != nil {
					err = fmt.Errorf("line %d: the name %s is there twice", item.Line, one.Name)
				}
				all.Contexts = append(all.Contexts, one)
				return err
			})
		}
		return unknownKey(key, "current, contexts")
	})
	if err == nil && all.Current != "" && all.find(all.Current) == nil {
		err = fmt.Errorf("current is %s, and there is no such context; `tutti context use NAME` chooses one%s", all.Current, all.offered())
	}
	return all, err
}

func parseContext(node *yaml.Node, path string) (c serverContext, err error) {
	fields := map[string]*string{"name": &c.Name, "server": &c.Server, "ca_file": &c.CAFile, "ca": &c.CA, "token_file": &c.TokenFile, "user": &c.User}
	err = eachKey(node, path, func(key string, value *yaml.Node) error {
		if field := fields[key]; field != nil {
			return takeText(field, path+key, value)
		}
		return unknownKey(path+key, "name, server, ca_file, ca, token_file, user")
	})
	if err != nil {
		return c, err
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("line %d: %s%w", node.Line, path, err)
	}
	return c, nil
}

// check says which key of a context is wrong, and why.
func (c serverContext) check() error {
	switch {
	case !contextName.MatchString(c.Name):
		return fmt.Errorf("name: %.80q is no name for a context: letters, digits, dot, dash and underscore, 63 at most", c.Name)
	case c.CA != "" && c.CAFile != "":
		return errors.New("ca: there is a ca_file, too; keep one of them")
	}
	if _, err := agent.ParseServer(c.Server); err != nil {
		return fmt.Errorf("server: %s", fault.Detail(err))
	}
	return nil
}

// eachKey gives each key of a mapping to take, whose errors get the key's line.
func eachKey(node *yaml.Node, path string, take func(key string, value *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: %s holds keys with values, such as name: prod", node.Line, first(strings.TrimSuffix(path, "."), "the file"))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if seen[key.Value] {
			return fmt.Errorf("line %d: the key %s%s is there twice", key.Line, path, key.Value)
		}
		seen[key.Value] = true
		if err := take(key.Value, value); err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				err = fmt.Errorf("line %d: %w", key.Line, err)
			}
			return err
		}
	}
	return nil
}

func eachItem(node *yaml.Node, path string, take func(i int, item *yaml.Node) error) error {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		return fmt.Errorf("%s is a list: each of its items begins with a dash", path)
	}
	for i, item := range node.Content {
		if err := take(i, item); err != nil {
			return err
		}
	}
	return nil
}

func takeText(to *string, key string, node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("%s is a text", key)
	}
	if node.ShortTag() != "!!null" {
		*to = node.Value
	}
	return nil
}

func unknownKey(key, known string) error {
	return fmt.Errorf("there is no key %.80q; here are %s", key, known)
}

// find returns a context of the file, or nil.
func (all *contexts) find(name string) *serverContext {
	if i := slices.IndexFunc(all.Contexts, func(c serverContext) bool { return c.Name == name }); i >= 0 {
		return &all.Contexts[i]
	}
	return nil
}

// get is find for a name that somebody gave.
func (all *contexts) get(name string) (*serverContext, error) {
	if found := all.find(name); found != nil {
		return found, nil
	}
	no := fmt.Sprintf("there is no context %.80q in %s%s", name, all.path, all.offered())
	hint := fault.DidYouMean(name, all.names())
	if hint == "" {
		no += fmt.Sprintf("; `tutti context add %s --server https://HOST:8140 --ca-fingerprint ...` adds one", name)
	}
	return nil, usageError{&fault.Error{Kind: fault.Invalid, Detail: no, Hint: hint}}
}

// offered says which contexts there are.
func (all *contexts) offered() string {
	if len(all.Contexts) == 0 {
		return ", there are none"
	}
	return ", there are " + strings.Join(all.names(), ", ")
}

func (all *contexts) names() []string {
	var names []string
	for _, c := range all.Contexts {
		names = append(names, c.Name)
	}
	return names
}

// save replaces the file: the old or the new text is there, never half, for nobody else to read.
func (all *contexts) save() error {
	if all.path == "" {
		return fault.New(fault.Invalid, "there is no place for contexts: HOME is not set; name a file with TUTTI_CONTEXT_FILE")
	}
	var text bytes.Buffer
	text.WriteString("# The servers that tutti asks; `tutti context --help` says how this is changed.\n")
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(all), encoder.Close()); err != nil {
		return err
	}
	if err := writePrivate(all.path, text.Bytes()); err != nil {
		return fault.Wrap(fault.Invalid, err, "the contexts cannot be kept in %s: %v", all.path, reason(err))
	}
	return nil
}

// writePrivate replaces a file with one that only its owner can read. A link is replaced, not followed.
func writePrivate(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fresh, err := os.CreateTemp(dir, ".tutti-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }() // unless it was renamed
	_, err = fresh.Write(text)
	if err = errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), path)
}
